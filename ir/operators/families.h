// The operators whose definitions are C++, one function per family. operators.cpp joins them with the operators of the
// files *.op.
#pragma once

#include <span>

#include "ir/operators/operators.h"

namespace hoist::operators {

std::span<const OperatorRow> product_operators();
std::span<const OperatorRow> normalisation_operators();
std::span<const OperatorRow> shape_operators();
std::span<const OperatorRow> movement_operators();
std::span<const OperatorRow> gather_operators();
std::span<const OperatorRow> selection_operators();
std::span<const OperatorRow> suppression_operators();
std::span<const OperatorRow> resize_operators();
std::span<const OperatorRow> control_operators();
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> sampling_operators();
std::span<const OperatorRow> region_operators();
std::span<const OperatorRow> signal_operators();
std::span<const OperatorRow> training_operators();
std::span<const OperatorRow> learning_operators();
std::span<const OperatorRow> tree_operators();
std::span<const OperatorRow> support_vector_operators();
std::span<const OperatorRow> sequence_operators();
std::span<const OperatorRow> text_operators();
std::span<const OperatorRow> encoder_operators();
std::span<const OperatorRow> image_operators();
std::span<const OperatorRow> variadic_operators();

}  // namespace hoist::operators
