// The values of the command line. Each command reads the values that rows of the option table (option_table.h) give to
// it; the other members keep their defaults.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backends/opencl/bundle_runner.h"
#include "tools/data/media.h"
#include "tools/driver/evaluation.h"
#include "tools/driver/model.h"
#include "tools/inspection/show_passes.h"
#include "tools/queue/queue.h"
#include "tools/queue/worker.h"
#include "tools/study/budgeted_compile.h"
#include "tools/training/training_options.h"

namespace hoist {

/// The number of elements that `verify` compares per kernel; --positions overrides a limit on their cost.
inline constexpr int64_t usual_positions = 24;

struct Options {
  std::string subject;             ///< the first word: a model, a bundle, a program, a name
  std::string layer;               ///< the second word
  std::vector<std::string> cases;  ///< the words of `test`

  std::string output, json, page, report;
  bool force = false, best_effort = false, no_check = false, validate = false, programs = false;
  double tune_seconds = 0;
  std::vector<std::string> budgets;

  std::vector<std::string> stages;
  bool types = false, terms = false, paths = false, choices = false;
  ShownPasses shown;

  std::string source;   ///< the model of a bundle
  std::string against;  ///< another bundle
  std::string data, labels, scores, metric = "top1";
  std::vector<std::string> data_folders, inputs;
  bool sequence = false;                 ///< of run: the inputs of several runs
  std::string load_states, save_states;  ///< files of run
  bool all = false, derivation = false, classes = false, roofline = false, interpret = false;
  int64_t positions = usual_positions, samples_a_job = 0;
  size_t best = 5;
  double seconds = 2, relative = 1e-3, absolute = 1e-7;

  std::vector<std::string> neural_rules, compared;
  std::vector<std::string> passes;
  std::string rule, place;
  std::string loss_value;                    ///< of grad: NAME or sum(NAME)
  std::string loss;                          ///< of grad: a loss of that value, or ""
  std::vector<std::string> with_respect_to;  ///< of grad: names, weights, inputs

  std::string strategy, listed_layer;
  int measurements = 32;
  size_t explored = 0;
  uint64_t seed = 1;
  double job_seconds = 120;  ///< time limit of a process that measures candidates

  std::vector<std::string> used;
  bool strategies = false, print_profile = false, print_page = false, list_queue = false;

  ModelOptions model;
  RunOptions run;
  BudgetOptions budget;
  TrainingOptions training;
  ImageOptions images;
  queue::QueueOptions queue;
  queue::WorkerOptions worker;

  std::string helper_part, job, cache;  ///< options of processes that the program starts
  std::set<std::string> given;          ///< names of the options on the command line, by their first long name

  bool is_given(const std::string& name) const { return given.contains(name); }
  /// The options of a budget, with the images and the queue of the command.
  BudgetOptions budget_options() const {
    BudgetOptions out = budget;
    out.images = images;
    out.queue = queue;
    return out;
  }
};

}  // namespace hoist
