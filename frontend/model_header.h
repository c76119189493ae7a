// The first steps of reading a model file: parsing, the versions that it states, and one spelling of domains. Includes
// onnx's classes; only for the sources of this folder.
#pragma once

#include <onnx/onnx_pb.h>

#include <exception>
#include <filesystem>
#include <new>

#include "frontend/file/model_file.h"
#include "frontend/frontend.h"

namespace hoist {

/// Parses the file; its bytes are added to `hash`, which may be null. Errors: no file, a file past the limits of
/// `options`, not an ONNX model.
Result<onnx::ModelProto> parse_model(const std::filesystem::path& path, const ReadOptions& options, ModelHash* hash);

/// Problems of the versions that the model states: its IR version and its opsets.
Diagnostics check_header(const onnx::ModelProto& model, const std::string& file);

/// Afterwards the domain of the standard is always "", has an opset, and every operator of onnxruntime has its domain.
void normalise_domains(onnx::ModelProto& model);

/// Runs a step of reading and catches exceptions of the libraries.
template <class F>
auto guarded(const std::filesystem::path& path, F step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return Diagnostic{path.string(), "does not fit into memory", ""};
  } catch (const std::exception& error) {
    return Diagnostic{path.string(), std::string("cannot be read: ") + error.what(), ""};
  }
}

}  // namespace hoist
