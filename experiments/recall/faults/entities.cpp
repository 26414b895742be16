// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The world of a game: the entities that are awake are moved in each tick, in the order in which they woke. A class has
// grown over the years, so that place, speed and strength stand among texts and tables that a tick does not read: a
// move touches five lines. The twin's class begins with them.
//
// SIZE: ticks.
//
//: half = "third"
//: kind = "layout"
//: names = ["move_awake", "Entity", "make_world", "x_", "y_", "speed_x_", "speed_y_", "strength_"]
//: reach = "inside"
//: traced = 1000
//: measured = 1000
#include "../planted.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

class Entity {
public:
    explicit Entity(uint32_t n) : name_("entity"), carries_{n} {
        x_ = static_cast<float>(n % 640);
        y_ = static_cast<float>(n % 480);
        speed_x_ = static_cast<float>(n % 7);
        speed_y_ = static_cast<float>(n % 5);
        strength_ = n % 100;
    }

    void move() {
        x_ += speed_x_ * 0.5f;
        y_ += speed_y_ * 0.5f;
        if (x_ > 640)
            x_ -= 640;
        if (y_ > 480)
            y_ -= 480;
        strength_++;
    }
    uint64_t digest() const { return static_cast<uint64_t>(x_ + y_) + strength_ + name_.size() + carries_[0]; }

private:
#ifdef TWIN
    float x_, y_, speed_x_, speed_y_;
    uint32_t strength_;
    std::string name_, title_;
    uint32_t carries_[20], wears_[16], fears_[20];
#else
    float x_;
    std::string name_, title_;
    float y_;
    uint32_t carries_[20];
    float speed_x_;
    uint32_t wears_[16];
    float speed_y_;
    uint32_t fears_[20];
    uint32_t strength_;
#endif
};

using World = std::vector<std::unique_ptr<Entity>>;

HOT World make_world(uint32_t entities) {
    World world;
    for (uint32_t n = 0; n < entities; n++)
        world.push_back(std::make_unique<Entity>(n));
    for (uint32_t n = entities - 1; n > 0; n--)
        std::swap(world[n], world[mix(n) % (n + 1)]);
    return world;
}

HOT void move_awake(const World &world) {
    for (const auto &entity : world)
        entity->move();
}

int main(int argc, char **argv) {
    uint64_t ticks = argument(argc, argv, 1, 1 << 20), digest = 0, begun = now_ns();
    World world = make_world(40000);
    for (uint64_t i = 0; i < ticks; i++)
        move_awake(world);
    for (const auto &entity : world)
        digest = mix(digest + entity->digest());
    return report(digest, begun);
}
