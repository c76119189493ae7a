// A node of onnx's graph as a call that the builder of programs takes: operator, operands, attributes and bodies.
// Borders onnx; for the rest of this folder only.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>

#include "frontend/file/model_file.h"
#include "frontend/model/maps.h"
#include "ir/program/program_builder.h"

namespace hoist {

/// The parts of a model that a call needs besides its node; all outlive the reader.
struct CallReader {
  const MapLayers& maps;
  const ExternalData& external;
  int opset;                     ///< of ai.onnx
  int64_t maximum_tensor_bytes;  ///< maximum bytes of a constant inside a layer

  /// Adds to `problems` each attribute or constant that cannot be read.
  NamedCall call(const onnx::NodeProto& node, Diagnostics& problems) const;

 private:
  NamedBody body(const onnx::AttributeProto& attribute, const std::string& where, Diagnostics& problems) const;
  Result<Attribute> attribute(const onnx::AttributeProto& attribute, const std::string& where) const;
};

}  // namespace hoist
