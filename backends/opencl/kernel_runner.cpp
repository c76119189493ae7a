#include "backends/opencl/kernel_runner.h"

#include <map>
#include <memory>
#include <mutex>
#include <type_traits>

#include "backends/runtime/opencl/opencl_device.h"

namespace hoist {
namespace {

template <class T, cl_int (*release)(T)>
struct Releaser {
  void operator()(T object) const { release(object); }
};
using Program = std::unique_ptr<std::remove_pointer_t<cl_program>, Releaser<cl_program, clReleaseProgram>>;
using Kernel = std::unique_ptr<std::remove_pointer_t<cl_kernel>, Releaser<cl_kernel, clReleaseKernel>>;
using Buffer = std::unique_ptr<std::remove_pointer_t<cl_mem>, Releaser<cl_mem, clReleaseMemObject>>;

struct Context {
  hoist_target target = {};
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
};

Diagnostic device_error(const std::string& where, const char* what, cl_int code) {
  return {where, std::string(what) + ": " + hoist_cl_name(code), ""};
}

/// Contexts live until the process ends: drivers start slowly, and some crash when they are shut down.
Result<Context> context_for(const std::string& wanted) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<std::string, Context>;  // never destroyed, nor are its contexts
  const std::scoped_lock lock(mutex);
  if (const auto found = contexts.find(wanted); found != contexts.end()) return found->second;
  Context out;
  hoist_error error = {};
  if (hoist_target_open(wanted.c_str(), nullptr, 0, &out.target, &error) != HOIST_OK) {
    return Diagnostic{"", error.message, "hoist devices lists them"};
  }
  cl_int code = CL_SUCCESS;
  out.context = clCreateContext(nullptr, 1, &out.target.device, nullptr, nullptr, &code);
  if (code != CL_SUCCESS) return device_error(out.target.name, "clCreateContext", code);
  out.queue = clCreateCommandQueue(out.context, out.target.device, 0, &code);
  if (code != CL_SUCCESS) return device_error(out.target.name, "clCreateCommandQueue", code);
  contexts.emplace(wanted, out);
  return out;
}

Result<Program> compile(const Context& context, const std::string& source, const std::string& options) {
  cl_program program = nullptr;
  hoist_error error = {};
  if (hoist_program_compile(&context.target, context.context, source.c_str(), source.size(), options.c_str(), &program,
                            &error) != HOIST_OK) {
    return Diagnostic{"", error.message, ""};
  }
  return Program(program);
}

}  // namespace

Result<std::vector<Tensor>> run_kernel(const PlanKernel& kernel, const std::string& preamble,
                                       const std::string& build_options, const std::vector<Tensor>& inputs,
                                       const KernelRun& options) {
  const std::string where = "kernel " + kernel.name;
  HOIST_TRY(const Context context, context_for(options.device));
  HOIST_TRY(const Program program, compile(context, preamble + "\n" + kernel.source, build_options));
  cl_int code = CL_SUCCESS;
  const Kernel function(clCreateKernel(program.get(), kernel.name.c_str(), &code));
  if (code != CL_SUCCESS) return device_error(where, "clCreateKernel", code);

  std::vector<Buffer> buffers;
  size_t next_input = 0;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const KernelParameter& parameter = kernel.parameters[i];
    const auto bytes = static_cast<size_t>(byte_size(parameter.scalar, parameter.shape));
    std::vector<std::byte> content(std::max<size_t>(bytes, 1), options.clear_result ? std::byte{0} : std::byte{0xff});
    if (!parameter.written) {
      HOIST_CHECK(next_input < inputs.size(), where + ": fewer tensors than parameters");
      const Tensor& input = inputs[next_input++];
      if (input.scalar() != parameter.scalar || input.bytes().size() != bytes) {
        return Diagnostic{where,
                          parameter.name + " takes " + std::to_string(bytes) + " bytes, given " +
                              std::to_string(input.bytes().size()),
                          "or another scalar type"};
      }
      std::copy(input.bytes().begin(), input.bytes().end(), content.begin());
    }
    buffers.emplace_back(clCreateBuffer(context.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, content.size(),
                                        content.data(), &code));
    if (code != CL_SUCCESS) return device_error(where, "clCreateBuffer", code);
    const cl_mem buffer = buffers.back().get();
    code = clSetKernelArg(function.get(), static_cast<cl_uint>(i), sizeof buffer, &buffer);
    if (code != CL_SUCCESS) return device_error(where, "clSetKernelArg", code);
  }
  HOIST_CHECK(next_input == inputs.size(), where + ": more tensors than parameters");
  if (kernel.local_bytes > 0) {
    const auto last = static_cast<cl_uint>(kernel.parameters.size());
    code = clSetKernelArg(function.get(), last, kernel.local_bytes, nullptr);
    if (code != CL_SUCCESS) return device_error(where, "clSetKernelArg", code);
  }

  const size_t global[3] = {kernel.global[0], kernel.global[1], kernel.global[2]};
  const size_t local[3] = {kernel.local[0], kernel.local[1], kernel.local[2]};
  code = clEnqueueNDRangeKernel(context.queue, function.get(), 3, nullptr, global, local, 0, nullptr, nullptr);
  if (code != CL_SUCCESS) return device_error(where, "clEnqueueNDRangeKernel", code);
  code = clFinish(context.queue);
  if (code != CL_SUCCESS) return device_error(where, "clFinish", code);

  std::vector<Tensor> out;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const KernelParameter& parameter = kernel.parameters[i];
    if (!parameter.written) continue;
    Tensor result(parameter.scalar, parameter.shape);
    const size_t bytes = result.bytes().size();
    if (bytes > 0) {
      code =
          clEnqueueReadBuffer(context.queue, buffers[i].get(), CL_TRUE, 0, bytes, result.data(), 0, nullptr, nullptr);
      if (code != CL_SUCCESS) return device_error(where, "clEnqueueReadBuffer", code);
    }
    out.push_back(std::move(result));
  }
  return out;
}

}  // namespace hoist
