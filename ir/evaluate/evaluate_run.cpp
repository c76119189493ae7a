// Runs the stages of a compiled term in sequence, long rows on all cores; evaluate_machine.h executes their programs.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "ir/base/threads.h"
#include "ir/evaluate/evaluate_machine.h"
#include "ir/evaluate/evaluate_program.h"
#include "ir/evaluate/interpreter/host_call.h"

namespace hoist {
namespace {

using evaluation::Machine;

constexpr double work_for_threads = 2e6;
constexpr int64_t pieces = 64;  // units of work for the threads, hence the maximum number of threads

class Runner {
 public:
  explicit Runner(Compiled& compiled) : c_(compiled) {}

  bool run() {
    for (const Stage& stage : c_.stages) {
      for (int b : stage.buffers) buffer(b).allocate();
      switch (stage.kind) {
        case Stage::plain:
          plain(stage);
          break;
        case Stage::serial:
          serial(stage);
          break;
        case Stage::scatter:
          scatter(stage);
          break;
        case Stage::host:
          host(stage);
          break;
      }
      if (outside_) return false;
    }
    return true;
  }

 private:
  Buffer& buffer(int id) { return c_.buffers[static_cast<size_t>(id)]; }

  void plain(const Stage& stage) {
    const CompiledTerm& program = stage.programs[0];
    std::byte* out = buffer(stage.buffers[0]).own.get();
    if (program.work * static_cast<double>(program.count) < work_for_threads) {
      Machine machine(program, c_.buffers);
      machine.run(0, program.count, out);
      outside_ = outside_ || machine.outside();
      return;
    }
    // Pieces that begin at row boundaries; each thread takes the next free piece.
    const int64_t row = evaluation::rows_across(program.extents).piece;
    const int64_t rows = program.count / row;
    const int64_t piece = std::max<int64_t>(1, rows / pieces) * row;
    std::atomic<int64_t> next = 0;
    std::atomic<bool> outside = false;
    auto work = [&] {
      Machine machine(program, c_.buffers);
      for (int64_t at = next.fetch_add(piece); at < program.count; at = next.fetch_add(piece)) {
        machine.run(at, std::min(at + piece, program.count), out);
      }
      if (machine.outside()) outside = true;
    };
    run_in_threads(pieces, work);
    outside_ = outside_ || outside;
  }

  // Calls f for each combination of values of a stage's enclosing variables, after setting it in all machines.
  template <class F>
  void for_each_outer(const Stage& stage, std::vector<std::unique_ptr<Machine>>& machines, F f) {
    int64_t combinations = 1;
    for (int64_t extent : stage.outer) combinations *= extent;
    for (int64_t at = 0; at < combinations; ++at) {
      int64_t rest = at;
      for (size_t i = stage.outer.size(); i-- > 0;) {
        set(stage, machines, stage.outer_variables[i], rest % stage.outer[i]);
        rest /= stage.outer[i];
      }
      f(at);
    }
    for (const auto& m : machines) outside_ = outside_ || m->outside();
  }

  void set(const Stage& stage, std::vector<std::unique_ptr<Machine>>& machines, IndexId variable, int64_t value) {
    const Index& index = c_.indices[variable];
    if (index.terms.empty()) return;
    for (size_t p = 0; p < machines.size(); ++p) {
      for (auto [atom, r] : stage.programs[p].uniform) {
        if (atom == index.terms[0].first) machines[p]->set(r, value);
      }
    }
  }

  std::vector<std::unique_ptr<Machine>> machines_of(const Stage& stage) {
    std::vector<std::unique_ptr<Machine>> machines;
    for (const CompiledTerm& program : stage.programs)
      machines.push_back(std::make_unique<Machine>(program, c_.buffers));
    return machines;
  }

  void serial(const Stage& stage) {
    const size_t leaves = stage.states.size();
    std::vector<std::unique_ptr<std::byte[]>> next;
    for (size_t i = 0; i < leaves; ++i) {
      buffer(stage.states[i]).allocate();
      next.push_back(std::make_unique_for_overwrite<std::byte[]>(buffer(stage.states[i]).bytes()));
    }
    auto machines = machines_of(stage);
    for_each_outer(stage, machines, [&](int64_t at) {
      for (size_t i = 0; i < leaves; ++i) {
        machines[i]->run(0, stage.programs[i].count, buffer(stage.states[i]).own.get());
      }
      for (int64_t step = 0; step < stage.steps; ++step) {
        set(stage, machines, stage.step, step);
        for (size_t i = 0; i < leaves; ++i)
          machines[leaves + i]->run(0, stage.programs[leaves + i].count, next[i].get());
        for (size_t i = 0; i < leaves; ++i) {
          Buffer& state = buffer(stage.states[i]);
          std::swap(state.own, next[i]);
          state.data = state.own.get();
          if (stage.keeps_all) keep(stage, i, at * stage.steps + step);
        }
      }
      for (size_t i = 0; i < leaves && !stage.keeps_all; ++i) keep(stage, i, at);
    });
  }

  void keep(const Stage& stage, size_t leaf, int64_t place) {
    const Buffer& state = buffer(stage.states[leaf]);
    std::memcpy(buffer(stage.buffers[leaf]).own.get() + static_cast<size_t>(place) * state.bytes(), state.own.get(),
                state.bytes());
  }

  void scatter(const Stage& stage) {
    const size_t leaves = stage.buffers.size();
    const CompiledTerm& where = stage.programs[0];
    std::vector<std::byte> column(static_cast<size_t>(stage.steps * column_bytes(where.scalar)));
    std::vector<int64_t> positions(static_cast<size_t>(stage.steps));
    auto machines = machines_of(stage);
    for_each_outer(stage, machines, [&](int64_t at) {
      machines[0]->run(0, stage.steps, column.data());
      column_conversion(where.scalar, Scalar::i64)(column.data(), positions.data(), stage.steps);
      for (size_t i = 0; i < leaves; ++i) {
        const CompiledTerm &update = stage.programs[1 + i], &base = stage.programs[1 + leaves + i];
        const auto element = static_cast<size_t>(update.count / stage.steps * column_bytes(update.scalar));
        std::vector<std::byte> updates(element * static_cast<size_t>(stage.steps));
        machines[1 + i]->run(0, update.count, updates.data());
        std::byte* out = buffer(stage.buffers[i]).own.get() + at * base.count * column_bytes(base.scalar);
        machines[1 + leaves + i]->run(0, base.count, out);
        for (size_t k = 0; k < positions.size(); ++k) {
          if (positions[k] < 0 || positions[k] >= stage.base_count) continue;
          std::memcpy(out + static_cast<size_t>(positions[k]) * element, updates.data() + k * element, element);
        }
      }
    });
  }

  // Failures are left to the interpreter, which reports the reason.
  void host(const Stage& stage) {
    auto machines = machines_of(stage);
    const Buffer& result = buffer(stage.buffers[0]);
    for_each_outer(stage, machines, [&](int64_t at) {
      std::vector<Tensor> arrays;
      for (size_t i = 0; i < machines.size(); ++i) {
        const CompiledTerm& program = stage.programs[i];
        std::vector<std::byte> column(static_cast<size_t>(program.count * column_bytes(program.scalar)));
        machines[i]->run(0, program.count, column.data());
        Tensor array(program.scalar, shape_of(stage.called->children[i]->type));
        write_column(column.data(), program.scalar, array.data(), 0, program.count);
        arrays.push_back(std::move(array));
      }
      const auto made = evaluate_host_call(stage.called->name, std::move(arrays), stage.called->type);
      outside_ = outside_ || !made.ok();
      if (!made.ok()) return;
      std::byte* out = buffer(stage.buffers[0]).own.get() + at * made->size() * column_bytes(result.scalar);
      read_column(*made, 0, made->size(), out);
    });
  }

  Compiled& c_;
  bool outside_ = false;
};

}  // namespace

bool run(Compiled& compiled) { return Runner(compiled).run(); }

}  // namespace hoist
