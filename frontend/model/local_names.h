// Names of values in graphs that layers hold. The standard lets sibling graphs use the same names, and onnx's shape
// inference stores its results for all graphs in one table by name. Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

namespace hoist {

/// Afterwards every value that a graph inside of a layer defines has a name that no other graph defines.
void make_names_unique(onnx::GraphProto& graph);

}  // namespace hoist
