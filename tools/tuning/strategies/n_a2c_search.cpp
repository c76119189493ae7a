#include "tools/tuning/strategies/n_a2c_search.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/base/result.h"
#include "tools/tuning/strategies/candidates.h"

namespace hoist::tuning {
namespace {

constexpr size_t collected = 6;    // points per batch
constexpr int steps = 3;           // from the best point
constexpr int most_walks = 200;    // walks without a new point, after which a random point is taken
constexpr double by_chance = 0.1;  // share of random steps
constexpr int hidden = 128;        // hidden units
constexpr size_t lesson = 32;      // steps per training batch
constexpr int lessons = 4;         // training batches per batch of points
constexpr double entropy = 0.01;   // weight of the entropy term, which prevents early convergence of the policy
constexpr double learning_rate = 1e-3;

/// A move to an adjacent point: one index for each move that some point of the space has.
class Moves {
 public:
  explicit Moves(const KnobSpace& space) : space_(space) {
    for (const Knob& knob : space.knobs) {
      first_.push_back(count_);
      auto& primes = primes_.emplace_back();
      switch (knob.kind) {
        case Knob::Kind::ordered:
          count_ += 2;
          break;
        case Knob::Kind::choice:
          count_ += knob.values.size();
          break;
        case Knob::Kind::factors: {
          const size_t parts = knob.values.empty() ? 0 : knob.values.front().size();
          int64_t extent = 1;
          for (size_t i = 0; i < parts; ++i) extent *= knob.values.front()[i];
          for (int64_t p = 2; extent > 1; ++p) {
            if (p > extent / p) p = extent;
            if (extent % p != 0) continue;
            primes.push_back(p);
            while (extent % p == 0) extent /= p;
          }
          count_ += parts * parts * primes.size();
          break;
        }
      }
    }
  }

  size_t count() const { return count_; }

  size_t between(const Point& from, const Point& to) const {
    size_t k = 0;
    while (from[k] == to[k]) ++k;
    const Knob& knob = space_.knobs[k];
    if (knob.kind == Knob::Kind::ordered) return first_[k] + (to[k] > from[k] ? 1 : 0);
    if (knob.kind == Knob::Kind::choice) return first_[k] + static_cast<size_t>(to[k]);
    const auto& before = knob.values[from[k]];
    const auto& after = knob.values[to[k]];
    size_t giver = 0, taker = 0, prime = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      if (after[i] < before[i]) giver = i;
      if (after[i] > before[i]) taker = i;
    }
    while (primes_[k][prime] != after[taker] / before[taker]) ++prime;
    return first_[k] + (prime * before.size() + giver) * before.size() + taker;
  }

 private:
  KnobSpace space_;
  std::vector<size_t> first_;
  std::vector<std::vector<int64_t>> primes_;
  size_t count_ = 0;
};

/// The coordinates of a point, each in [-1/2, 1/2]; the last is 1, so that layers need no bias.
Eigen::VectorXd position_of(const KnobSpace& space, const Point& point) {
  std::vector<double> numbers;
  for (size_t k = 0; k < space.knobs.size(); ++k) {
    const Knob& knob = space.knobs[k];
    const auto count = static_cast<double>(knob.values.size());
    if (knob.kind == Knob::Kind::factors) {
      double whole = 0;
      for (const int64_t factor : knob.values[point[k]]) whole += std::log2(static_cast<double>(factor));
      for (const int64_t factor : knob.values[point[k]])
        numbers.push_back(whole > 0 ? std::log2(static_cast<double>(factor)) / whole - 0.5 : 0);
    } else if (knob.kind == Knob::Kind::ordered) {
      numbers.push_back(count > 1 ? point[k] / (count - 1) - 0.5 : 0);
    } else {
      for (int i = 0; i < static_cast<int>(knob.values.size()); ++i) numbers.push_back(point[k] == i ? 0.5 : -0.5);
    }
  }
  numbers.push_back(1);
  return Eigen::Map<Eigen::VectorXd>(numbers.data(), static_cast<Eigen::Index>(numbers.size()));
}

struct Step {
  Eigen::VectorXd position;     // the start of the step
  std::vector<size_t> allowed;  // indices of moves
  size_t move = 0;
  double reward = 0;
};

/// A hidden layer that policy and value share, with gradients, trained by Adam.
class ActorCritic {
 public:
  ActorCritic(Eigen::Index inputs, Eigen::Index moves, Random& random) {
    add(hidden, inputs, random);
    add(moves, hidden, random);
    add(1, hidden, random);
  }

  /// The probability of each allowed move.
  Eigen::VectorXd policy(const Eigen::VectorXd& position, const std::vector<size_t>& allowed) const {
    return softmax(layers_[1].of(hidden_of(position)), allowed);
  }

  void learn(const std::vector<const Step*>& batch) {
    for (Layer& layer : layers_) layer.clear();
    for (const Step* step : batch) {
      const Eigen::VectorXd seen = hidden_of(step->position);
      const Eigen::VectorXd probabilities = softmax(layers_[1].of(seen), step->allowed);
      const double value = layers_[2].of(seen)(0);
      const double advantage = step->reward - value;
      // The gradient of -log(policy of the move) * advantage - entropy * (the policy's entropy) + advantage^2, with a
      // constant advantage in the first term.
      double mean_logarithm = 0;
      for (size_t i = 0; i < step->allowed.size(); ++i)
        mean_logarithm += probabilities(i) * std::log(std::max(probabilities(i), 1e-12));
      Eigen::VectorXd to_moves = Eigen::VectorXd::Zero(layers_[1].weights.rows());
      for (size_t i = 0; i < step->allowed.size(); ++i) {
        const double p = probabilities(i);
        const double taken = step->allowed[i] == step->move ? 1 : 0;
        to_moves(step->allowed[i]) =
            (p - taken) * advantage + entropy * p * (std::log(std::max(p, 1e-12)) - mean_logarithm);
      }
      const Eigen::VectorXd to_value = Eigen::VectorXd::Constant(1, -2 * advantage);
      Eigen::VectorXd to_hidden = layers_[1].weights.transpose() * to_moves + layers_[2].weights.transpose() * to_value;
      to_hidden = (seen.array() > 0).select(to_hidden, 0);
      layers_[0].add_gradient(to_hidden, step->position);
      layers_[1].add_gradient(to_moves, seen);
      layers_[2].add_gradient(to_value, seen);
    }
    ++updates_;
    for (Layer& layer : layers_) layer.move(static_cast<double>(batch.size()), updates_);
  }

 private:
  struct Layer {
    Eigen::MatrixXd weights, gradient, mean, square;

    Eigen::VectorXd of(const Eigen::VectorXd& input) const { return weights * input; }
    void clear() { gradient.setZero(); }
    void add_gradient(const Eigen::VectorXd& output, const Eigen::VectorXd& input) {
      gradient += output * input.transpose();
    }
    void move(double count, int update) {
      gradient /= count;
      mean = 0.9 * mean + 0.1 * gradient;
      square = 0.999 * square + 0.001 * gradient.cwiseProduct(gradient);
      const double mean_scale = 1 / (1 - std::pow(0.9, update));
      const double square_scale = 1 / (1 - std::pow(0.999, update));
      weights.array() -= learning_rate * mean_scale * mean.array() / ((square_scale * square.array()).sqrt() + 1e-8);
    }
  };

  void add(Eigen::Index outputs, Eigen::Index inputs, Random& random) {
    Layer& layer = layers_.emplace_back();
    const double bound = 1 / std::sqrt(static_cast<double>(inputs));
    layer.weights.resize(outputs, inputs);
    for (Eigen::Index i = 0; i < layer.weights.size(); ++i)
      layer.weights.data()[i] = (2 * random.fraction() - 1) * bound;
    layer.gradient = layer.mean = layer.square = Eigen::MatrixXd::Zero(outputs, inputs);
  }

  Eigen::VectorXd hidden_of(const Eigen::VectorXd& position) const { return layers_[0].of(position).cwiseMax(0); }

  static Eigen::VectorXd softmax(const Eigen::VectorXd& scores, const std::vector<size_t>& allowed) {
    Eigen::VectorXd result(static_cast<Eigen::Index>(allowed.size()));
    for (size_t i = 0; i < allowed.size(); ++i) result(i) = scores(allowed[i]);
    result = (result.array() - result.maxCoeff()).exp();
    return result / result.sum();
  }

  std::vector<Layer> layers_;  // hidden, policy, value
  int updates_ = 0;
};

class NA2cSearch : public Search {
 public:
  NA2cSearch(const KnobSpace& space, uint64_t seed) : candidates_(space, seed), moves_(space) {
    if (count_points(space) == 0) return;
    Random random(seed);
    const Point any(space.knobs.size(), 0);
    network_.emplace(position_of(space, any).size(), static_cast<Eigen::Index>(moves_.count()), random);
  }

  std::vector<Point> propose(size_t most) override {
    Random random = candidates_.random();
    std::vector<Point> points;
    if (candidates_.fill_first(points, most, random)) return points;
    const size_t size = std::min(most, collected);
    if (std::isfinite(best_.seconds))
      for (int walk = 0; walk < most_walks && points.size() < size; ++walk) take_steps(points, size, random);
    // All adjacent points are known: continue from a random point.
    if (points.empty()) candidates_.fill(points, std::min<size_t>(most, 1), random);
    return points;
  }

  void observe(const std::vector<Observation>& observations) override {
    candidates_.meet(observations);
    for (const Observation& observation : observations) {
      if (first_seconds_ == 0 && std::isfinite(observation.seconds)) first_seconds_ = observation.seconds;
      if (observation.seconds < best_.seconds) best_ = observation;
      const auto step = taken_.find(observation.point);
      if (step == taken_.end()) continue;
      // A step to a failing point is rewarded like a step to twice the initial time.
      step->second.reward =
          std::isfinite(observation.seconds) ? std::log(first_seconds_ / observation.seconds) : -std::log(2.0);
      memory_.push_back(std::move(step->second));
      taken_.erase(step);
    }
    if (memory_.empty()) return;
    Random random = candidates_.random();
    for (int i = 0; i < lessons; ++i) {
      std::vector<const Step*> batch;
      for (size_t j = 0; j < lesson; ++j) batch.push_back(&memory_[random.below(memory_.size())]);
      network_->learn(batch);
    }
  }

 private:
  void take_steps(std::vector<Point>& points, size_t size, Random& random) {
    Point here = best_.point;
    for (int i = 0; i < steps && points.size() < size; ++i) {
      const auto ways = adjacent_points(candidates_.space(), here);
      if (ways.empty()) return;
      Step step{position_of(candidates_.space(), here), {}, 0, 0};
      for (const Point& way : ways) step.allowed.push_back(moves_.between(here, way));
      size_t chosen = random.below(ways.size());
      if (random.fraction() >= by_chance) {
        const Eigen::VectorXd policy = network_->policy(step.position, step.allowed);
        double at = random.fraction();
        for (chosen = 0; chosen + 1 < ways.size() && (at -= policy(static_cast<Eigen::Index>(chosen))) >= 0;) ++chosen;
      }
      step.move = step.allowed[chosen];
      here = ways[chosen];
      if (!candidates_.is_new(here)) continue;
      candidates_.meet(here);
      points.push_back(here);
      taken_.emplace(here, std::move(step));
    }
  }

  Candidates candidates_;
  Moves moves_;
  std::optional<ActorCritic> network_;
  Observation best_{{}, std::numeric_limits<double>::infinity()};
  double first_seconds_ = 0;
  std::map<Point, Step> taken_;  // not observed yet
  std::vector<Step> memory_;
};

}  // namespace

std::unique_ptr<Search> n_a2c_search(const KnobSpace& space, uint64_t seed) {
  return std::make_unique<NA2cSearch>(space, seed);
}

}  // namespace hoist::tuning
