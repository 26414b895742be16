// Places near a position: a k-d tree over places, asked for the nearest one.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

struct Place {
    float x[2];
    char name[48];
    uint32_t population;
    uint32_t country;
    char remark[56];
    uint32_t left, right;
    uint32_t axis;
};

struct Point {
    float x[2];
};

class Tree {
  public:
    explicit Tree(const std::vector<Point> &points) : points_(points), order_(points.size()) {
        std::iota(order_.begin(), order_.end(), 0u);
        nodes_.reserve(points.size() + 1);
        nodes_.push_back({});
        root_ = build(0, order_.size(), 0);
    }

    uint32_t nearest(const Point &p) const {
        float best = 1e30f;
        uint32_t at = 0;
        search(root_, p, best, at);
        return at;
    }

    uint64_t describe(uint32_t at) const { return nodes_[at].population * 31ull + uint8_t(nodes_[at].name[6]); }

  private:
    uint32_t build(size_t from, size_t to, uint32_t axis) {
        if (from >= to)
            return 0;
        size_t mid = (from + to) / 2;
        std::nth_element(order_.begin() + from, order_.begin() + mid, order_.begin() + to,
                         [&](uint32_t a, uint32_t b) { return points_[a].x[axis] < points_[b].x[axis]; });
        uint32_t me = uint32_t(nodes_.size());
        nodes_.push_back({});
        Place &n = nodes_[me];
        n.x[0] = points_[order_[mid]].x[0];
        n.x[1] = points_[order_[mid]].x[1];
        n.axis = axis;
        snprintf(n.name, sizeof n.name, "place %u", order_[mid]);
        n.population = order_[mid] * 37u % 100000u;
        uint32_t l = build(from, mid, axis ^ 1), r = build(mid + 1, to, axis ^ 1);
        nodes_[me].left = l;
        nodes_[me].right = r;
        return me;
    }

    void search(uint32_t at, const Point &p, float &best, uint32_t &found) const {
        while (at) {
            const Place &n = nodes_[at];
            float dx = p.x[0] - n.x[0], dy = p.x[1] - n.x[1], d = dx * dx + dy * dy;
            if (d < best) {
                best = d;
                found = at;
            }
            float side = n.axis ? dy : dx;
            uint32_t near = side < 0 ? n.left : n.right, far = side < 0 ? n.right : n.left;
            search(near, p, best, found);
            if (side * side >= best)
                return;
            at = far;
        }
    }

    const std::vector<Point> &points_;
    std::vector<uint32_t> order_;
    std::vector<Place> nodes_;
    uint32_t root_;
};

int main(int argc, char **argv) {
    size_t n = 60000;
    int queries = argc > 1 ? atoi(argv[1]) : 1200000;
    int surveys = argc > 2 ? atoi(argv[2]) : 220;
    std::vector<Point> points(n);
    uint32_t x = 1;
    auto rnd = [&] {
        x = x * 1664525 + 1013904223;
        return (x >> 8) / 16777216.0f;
    };
    // Places lie around towns; surveys improve them one after another.
    for (int s = 0; s < surveys; s++)
        for (auto &p : points) {
            float r = std::sqrt(-2 * std::log(rnd() + 1e-7f)), a = 6.2831853f * rnd();
            p.x[0] = p.x[0] * 0.2f + r * std::cos(a);
            p.x[1] = p.x[1] * 0.2f + r * std::sin(a);
        }
    Tree tree(points);
    uint64_t digest = 0;
    for (int q = 0; q < queries; q++) {
        Point p{(rnd() - 0.5f) * 4, (rnd() - 0.5f) * 4};
        digest = digest * 1099511628211ull + tree.describe(tree.nearest(p));
    }
    printf("queries %d digest %016llx\n", queries, (unsigned long long)digest);
}
