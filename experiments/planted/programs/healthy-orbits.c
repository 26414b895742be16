/* A cluster of stars, leapfrog, all pairs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STARS = 384 };
static double x[STARS], y[STARS], z[STARS], u[STARS], v[STARS], w[STARS], mass[STARS];

int main(int argc, char **argv)
{
	int steps = argc > 1 ? atoi(argv[1]) : 1000;
	unsigned s = 3;
	for (int i = 0; i < STARS; i++) {
		s = s * 1664525 + 1013904223;
		x[i] = (s >> 8) % 1000 * 0.01;
		y[i] = (s >> 12) % 1000 * 0.01;
		z[i] = (s >> 16) % 1000 * 0.01;
		mass[i] = 1 + (s >> 30);
	}
	for (int t = 0; t < steps; t++) {
		for (int i = 0; i < STARS; i++) {
			double ax = 0, ay = 0, az = 0;
			for (int j = 0; j < STARS; j++) {
				double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
				double r2 = dx * dx + dy * dy + dz * dz + 0.05;
				double f = mass[j] / (r2 * sqrt(r2));
				ax += f * dx;
				ay += f * dy;
				az += f * dz;
			}
			u[i] += 1e-4 * ax;
			v[i] += 1e-4 * ay;
			w[i] += 1e-4 * az;
		}
		for (int i = 0; i < STARS; i++) {
			x[i] += 1e-4 * u[i];
			y[i] += 1e-4 * v[i];
			z[i] += 1e-4 * w[i];
		}
	}
	double e = 0;
	for (int i = 0; i < STARS; i++)
		e += mass[i] * (u[i] * u[i] + v[i] * v[i] + w[i] * w[i]);
	printf("steps %d energy %.12e\n", steps, e);
}
