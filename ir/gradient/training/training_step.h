// A step of training as one program: the forward pass, the loss, its gradients and the optimiser's update. Weights,
// running averages, the optimiser's states and the number of runs are states of the program, which begin with the
// model's values; the data, what they should give and the learning rate are inputs. Every pass and target handles it
// like any other program. For gradients alone use gradient.h.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/gradient/gradient.h"
#include "ir/gradient/training/gradient_formats.h"
#include "ir/gradient/training/kronecker.h"
#include "ir/gradient/training/optimisers.h"
#include "ir/program/program.h"

namespace hoist {

struct TrainingRequest {
  std::string value;                   ///< the value that the loss judges
  std::string loss = "cross-entropy";  ///< as in add_loss
  Optimiser optimiser;
  std::vector<std::string> weights;          ///< constants of f32 or f64 that change
  std::vector<std::string> averages;         ///< constants that may follow the statistics of batches
  std::map<std::string, Tensor> masks = {};  ///< by weight, of bool: where false, the weight is 0 and stays 0
  double clip = 0;                           ///< the largest norm of all gradients together; 0: none
  double smoothing = 0;                      ///< as in add_loss
  std::set<std::string> open;                ///< of decay, clip and smoothing: inputs instead of numbers of the program
  int64_t accumulated = 1;                   ///< runs whose mean gradient makes one step
  uint64_t seed = 1;
  GradientTerms straight_through = {};        ///< of rounded values (gradient.h)
  const GradientFormat* gradients = nullptr;  ///< to which each run rounds gradients of arrays; null: exact
};

struct TrainingStep {
  Program program;                   ///< outputs: the loss, then the norm of the gradients if it is limited
  std::vector<std::string> weights;  ///< states that are named after the constants of the model, averages included
  std::vector<std::string> inputs;   ///< the model's, which hold data
  std::string target;                ///< the input that the loss adds
  std::string rate;                  ///< the input of the learning rate, one f32
  std::map<std::string, std::string> open;    ///< the inputs of open hyper-parameters, one f32 each
  std::map<std::string, std::string> owners;  ///< the weight of each state of the optimiser, and of itself
  std::vector<KroneckerFactor> factors;       ///< their roots are inputs too
  std::string counter;                        ///< the state that counts runs
  std::vector<std::string> contributions;     ///< the loss, then the other values of one run that the update reads
};

/// The program of a step. Errors: errors of add_loss and gradient, weights of other types, no weights.
Result<TrainingStep> training_step(Program program, const TrainingRequest& request);

/// The model with a loss, as it is used after training: these constants become inputs after the model's and the loss's.
/// Outputs: the loss and the value that it judges.
Result<Program> judged_program(Program program, const TrainingRequest& request,
                               const std::vector<std::string>& constants);

}  // namespace hoist
