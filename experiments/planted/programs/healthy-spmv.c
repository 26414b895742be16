/* Conjugate gradients for a five-point problem: rows compressed, vectors dense. */
#include <stdio.h>
#include <stdlib.h>

enum { NX = 300, NY = 300, N = NX * NY };
static int *first, *column;
static double *value;

static void assemble(void)
{
	first = malloc((N + 1) * sizeof *first);
	column = malloc(5 * N * sizeof *column);
	value = malloc(5 * N * sizeof *value);
	int n = 0;
	for (int i = 0; i < N; i++) {
		int x = i % NX, y = i / NX;
		first[i] = n;
		if (y)
			column[n] = i - NX, value[n++] = -1;
		if (x)
			column[n] = i - 1, value[n++] = -1;
		column[n] = i, value[n++] = 4 + (i % 3) * 0.01;
		if (x < NX - 1)
			column[n] = i + 1, value[n++] = -1;
		if (y < NY - 1)
			column[n] = i + NX, value[n++] = -1;
	}
	first[N] = n;
}

static void multiply(const double *x, double *y)
{
	for (int i = 0; i < N; i++) {
		double s = 0;
		for (int e = first[i]; e < first[i + 1]; e++)
			s += value[e] * x[column[e]];
		y[i] = s;
	}
}

static double dot(const double *a, const double *b)
{
	double s = 0;
	for (int i = 0; i < N; i++)
		s += a[i] * b[i];
	return s;
}

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 1000;
	assemble();
	double *v = malloc(4 * (N + 24) * sizeof *v);
	double *x = v, *r = v + N + 24, *p = r + N + 24, *q = p + N + 24;
	double rr = 0;
	for (int i = 0; i < N; i++) {
		x[i] = 0;
		r[i] = p[i] = 1.0 / (1 + i % 17);
	}
	rr = dot(r, r);
	for (int s = 0; s < steps; s++) {
		multiply(p, q);
		double alpha = rr / (dot(p, q) + 1e-300);
		for (int i = 0; i < N; i++) {
			x[i] += alpha * p[i];
			r[i] -= alpha * q[i];
		}
		double next = dot(r, r), beta = next / (rr + 1e-300);
		for (int i = 0; i < N; i++)
			p[i] = r[i] + beta * p[i];
		rr = next;
		if (rr < 1e-60)
			for (int i = 0; i < N; i++)
				r[i] = p[i] = 1.0 / (1 + (i + s) % 17), rr = 1;
	}
	printf("steps %d x %.9e\n", steps, dot(x, x));
}
