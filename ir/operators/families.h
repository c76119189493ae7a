// The families of operators, one function each; operators.cpp joins them into one table.
#pragma once

#include <span>

#include "ir/operators/operators.h"

namespace hoist::operators {

std::span<const OperatorRow> elementwise_operators();
std::span<const OperatorRow> activation_operators();
std::span<const OperatorRow> product_operators();
std::span<const OperatorRow> pooling_operators();
std::span<const OperatorRow> reduction_operators();
std::span<const OperatorRow> normalisation_operators();
std::span<const OperatorRow> shape_operators();
std::span<const OperatorRow> movement_operators();
std::span<const OperatorRow> gather_operators();
std::span<const OperatorRow> selection_operators();
std::span<const OperatorRow> suppression_operators();
std::span<const OperatorRow> resize_operators();
std::span<const OperatorRow> quantisation_operators();
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> contributed_operators();
std::span<const OperatorRow> sampling_operators();
std::span<const OperatorRow> signal_operators();
std::span<const OperatorRow> training_operators();
std::span<const OperatorRow> learning_operators();
std::span<const OperatorRow> tree_operators();
std::span<const OperatorRow> support_vector_operators();
std::span<const OperatorRow> random_operators();
std::span<const OperatorRow> sequence_operators();
std::span<const OperatorRow> text_operators();
std::span<const OperatorRow> encoder_operators();
std::span<const OperatorRow> picture_operators();

}  // namespace hoist::operators
