// Charged particles in a box: every step uses every field of every particle.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

struct Particle {
  double x, y, z;
  double vx, vy, vz;
  double mass, charge;
};

constexpr int kParticles = 60000;
constexpr int kSteps = 6000;

struct Field {
  double ex, ey, ez, bz;
};

void step(std::vector<Particle> &ps, const Field &f, double dt) {
  for (Particle &p : ps) {
    double k = p.charge / p.mass * dt;
    double ax = f.ex + p.vy * f.bz, ay = f.ey - p.vx * f.bz;
    p.vx += k * ax;
    p.vy += k * ay;
    p.vz += k * f.ez;
    p.x += p.vx * dt;
    p.y += p.vy * dt;
    p.z += p.vz * dt;
    if (p.x < 0 || p.x > 1) p.vx = -p.vx;
    if (p.y < 0 || p.y > 1) p.vy = -p.vy;
    if (p.z < 0 || p.z > 1) p.vz = -p.vz;
  }
}

}  // namespace

int main() {
  std::vector<Particle> ps(kParticles);
  uint64_t rs = 88172645463325252ull;
  auto unit = [&rs] {
    rs ^= rs << 13;
    rs ^= rs >> 7;
    rs ^= rs << 17;
    return double(rs >> 11) / 9007199254740992.0;
  };
  for (Particle &p : ps)
    p = {unit(), unit(), unit(), unit() - 0.5, unit() - 0.5, unit() - 0.5, 1 + unit(), unit() - 0.5};
  Field f{0.1, -0.05, 0.02, 0.7};
  for (int s = 0; s < kSteps; s++) {
    f.ex = 0.1 * std::cos(s * 0.01);
    step(ps, f, 0.002);
  }
  double energy = 0;
  for (const Particle &p : ps) energy += 0.5 * p.mass * (p.vx * p.vx + p.vy * p.vy + p.vz * p.vz) + p.x * 1e-3;
  std::printf("%.9f\n", energy);
}
