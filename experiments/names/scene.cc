// Shared nodes of a scene, made by one factory, updated in random order.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <utility>
#include <vector>

struct Node {
    virtual ~Node() = default;
    virtual double update(double time) = 0;
};

struct Sprite : Node {
    double x, y, speed, history[4] = {};
    Sprite(double x, double y, double speed) : x(x), y(y), speed(speed) {}
    double update(double time) override {
        x += speed * time;
        history[int(x) & 3] = y;
        return x;
    }
};

template <class T, class... Args>
std::shared_ptr<T> spawn(Args &&...args) {
    return std::make_shared<T>(std::forward<Args>(args)...);  // dominating object
}

static std::vector<std::shared_ptr<Node>> build_scene(int n) {
    std::vector<std::shared_ptr<Node>> scene;
    for (int i = 0; i < n; i++) scene.push_back(spawn<Sprite>(i, i * 0.5, 0.01 * (i % 7)));
    return scene;
}

int main() {
    auto scene = build_scene(80000);
    std::minstd_rand random(1);
    double sum = 0;
    for (int i = 0; i < 2500000; i++) {
        std::size_t at = (std::uint64_t(random()) * scene.size()) >> 31;
        sum += scene[at]->update(0.016);
    }
    std::printf("%.0f\n", sum);
}
