// Heat in an unstructured mesh: each cell takes from its neighbours, which lie anywhere.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct Cell {
    double centre[3];
    double volume;
    double heat;
    double normal[8];
    uint32_t material, zone;
    double conductivity;
    double history[5];
};

struct Mesh {
    std::vector<Cell> cells;
    std::vector<uint32_t> first, neighbour;

    explicit Mesh(uint32_t n) : cells(n), first(n + 1) {
        uint32_t x = 9;
        neighbour.reserve(n * 5);
        for (uint32_t i = 0; i < n; i++) {
            Cell &c = cells[i];
            x = x * 1664525 + 1013904223;
            c.volume = 1 + (x >> 28);
            c.heat = (x >> 8) % 1000;
            c.conductivity = 0.1 + (x >> 24) / 512.0;
            c.material = x >> 30;
            for (int k = 0; k < 3; k++)
                c.centre[k] = (x >> (4 * k)) & 255;
            first[i] = uint32_t(neighbour.size());
            for (uint32_t k = 0; k < 4 + (x >> 31); k++) {
                x = x * 1664525 + 1013904223;
                neighbour.push_back((x >> 4) % n);
            }
        }
        first[n] = uint32_t(neighbour.size());
    }

    double heat(uint32_t i) const { return cells[i].heat; }
    double conductivity(uint32_t i) const { return cells[i].conductivity; }
    void warm(uint32_t i, double h) { cells[i].heat = h; }
};

static void relax(Mesh &m, std::vector<double> &next) {
    uint32_t n = uint32_t(next.size());
    for (uint32_t i = 0; i < n; i++) {
        double flow = 0, own = m.heat(i), k = m.conductivity(i);
        for (uint32_t e = m.first[i]; e < m.first[i + 1]; e++) {
            uint32_t j = m.neighbour[e];
            flow += (m.heat(j) - own) * (k + m.conductivity(j));
        }
        next[i] = own + 0.05 * flow;
    }
    for (uint32_t i = 0; i < n; i++)
        m.warm(i, next[i]);
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 450;
    Mesh m(50000);
    std::vector<double> next(50000);
    for (int s = 0; s < steps; s++)
        relax(m, next);
    double sum = 0, energy = 0;
    for (uint32_t i = 0; i < next.size(); i++) {
        sum += m.heat(i);
        energy += m.heat(i) * m.cells[i].volume;
    }
    printf("steps %d sum %.9e energy %.9e\n", steps, sum, energy);
}
