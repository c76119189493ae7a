#include "tests/halide/runner.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>

#include "backends/halide/native/native_target.h"
#include "backends/runtime/native/native_device.h"
#include "ir/text/text.h"

namespace hoist::testing {
namespace {

struct Device {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
};

Result<Device*> device() {
  static Device d;
  if (d.queue != nullptr) return &d;
  cl_platform_id platforms[8];
  cl_uint count = 0;
  if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS || count == 0)
    return Diagnostic{"", "no OpenCL platform", ""};
  for (cl_uint i = 0; i < std::min(count, 8u); ++i) {
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &d.id, nullptr) == CL_SUCCESS) break;
  }
  cl_int error = 0;
  d.context = clCreateContext(nullptr, 1, &d.id, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) return Diagnostic{"", fmt::format("clCreateContext gives {}", error), ""};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  d.queue = clCreateCommandQueue(d.context, d.id, 0, &error);
#pragma GCC diagnostic pop
  if (error != CL_SUCCESS) return Diagnostic{"", fmt::format("clCreateCommandQueue gives {}", error), ""};
  return &d;
}

struct Memory {
  cl_mem mem = nullptr;
  ~Memory() {
    if (mem != nullptr) clReleaseMemObject(mem);
  }
};

Result<cl_program> built(Device* d, cl_program program, const std::string& options, const std::string& name) {
  if (clBuildProgram(program, 1, &d->id, options.c_str(), nullptr, nullptr) == CL_SUCCESS) return program;
  std::string log(100000, '\0');
  size_t length = 0;
  clGetProgramBuildInfo(program, d->id, CL_PROGRAM_BUILD_LOG, log.size(), log.data(), &length);
  log.resize(std::min<size_t>(length, 2000));
  clReleaseProgram(program);
  return Diagnostic{name, "does not build: " + log, ""};
}

Result<cl_program> from_source(Device* d, const std::string& source, const std::string& name) {
  const char* text = source.c_str();
  return built(d, clCreateProgramWithSource(d->context, 1, &text, nullptr, nullptr), build_options(), name);
}

// PoCL's library has no fma for halves. In f64 the product is exact and the sum keeps every bit that matters for a
// half. A function with this name hides clang's own, so the float and double versions are declared as well.
constexpr const char* fma_of_halves = R"(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL FP_CONTRACT OFF
half __attribute__((overloadable)) fma(half a, half b, half c) { return (half)((double)a * (double)b + (double)c); }
#define FMA(N) half##N __attribute__((overloadable)) fma(half##N a, half##N b, half##N c) { \
  double##N x = __builtin_convertvector(a, double##N), y = __builtin_convertvector(b, double##N); \
  return __builtin_convertvector(x * y + __builtin_convertvector(c, double##N), half##N); }
FMA(2) FMA(3) FMA(4) FMA(8) FMA(16)
#define DECLARED(T) T __attribute__((overloadable)) fma(T a, T b, T c);
DECLARED(float) DECLARED(float2) DECLARED(float3) DECLARED(float4) DECLARED(float8) DECLARED(float16)
DECLARED(double) DECLARED(double2) DECLARED(double3) DECLARED(double4) DECLARED(double8) DECLARED(double16)
)";

Result<cl_program> from_spir(Device* d, const std::string& source, const std::string& name) {
  std::string folder = (std::filesystem::temp_directory_path() / "hoist-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return Diagnostic{name, "no temporary folder", ""};
  std::ofstream(folder + "/kernels.cl") << fma_of_halves << source;
  const std::string command = fmt::format(
      "clang -x cl {} -target spir64 -Xclang -finclude-default-header -emit-llvm -c -o '{}/kernels.bc' "
      "'{}/kernels.cl' 2>'{}/said'",
      build_options(), folder, folder, folder);
  const bool compiled = std::system(command.c_str()) == 0;
  std::ostringstream binary, said;
  binary << std::ifstream(folder + "/kernels.bc", std::ios::binary).rdbuf();
  said << std::ifstream(folder + "/said").rdbuf();
  std::filesystem::remove_all(folder);
  if (!compiled || !said.str().empty()) return Diagnostic{name, "clang says: " + said.str(), ""};
  const std::string bytes = binary.str();
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t size = bytes.size();
  cl_int error = 0;
  cl_program program = clCreateProgramWithBinary(d->context, 1, &d->id, &size, &data, nullptr, &error);
  if (error != CL_SUCCESS) return Diagnostic{name, fmt::format("clCreateProgramWithBinary gives {}", error), ""};
  return built(d, program, "-x spir -spir-std=1.2", name);
}

using Compiler = Result<cl_program> (*)(Device*, const std::string&, const std::string&);

std::string source_of(const std::vector<EmittedKernel>& kernels) {
  std::string source = preamble();
  for (const EmittedKernel& kernel : kernels) source += kernel.source;
  return source;
}

// The compiler for halves on the device, found by trying; null if there is none.
Compiler half_compiler(std::string* reason) {
  static std::string why;
  static const Compiler found = []() -> Compiler {
    auto d = device();
    if (!d) {
      why = d.errors()[0].text();
      return nullptr;
    }
    char device_name[256] = "";
    clGetDeviceInfo((*d)->id, CL_DEVICE_NAME, sizeof device_name, device_name, nullptr);
    if (std::string(device_name).find("Oclgrind") != std::string::npos) {
      why = "Oclgrind compiles halves, but ends where it meets one";
      return nullptr;
    }
    const char* trial =
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n"
        "__kernel void trial(__global float* x) { half h = (half)x[0]; x[0] = (float)(h + h); }\n";
    for (Compiler compiler : {from_source, from_spir}) {
      auto program = compiler(*d, trial, "");
      if (program) {
        clReleaseProgram(*program);
        return compiler;
      }
      why += (why.empty() ? "" : "; ") + program.errors()[0].text();
    }
    return nullptr;
  }();
  if (reason != nullptr && found == nullptr) *reason = why;
  return found;
}

// Runs native code as in a bundle's library, in two ranges of groups, the later range first.
Result<std::vector<Tensor>> run_native(const std::vector<EmittedKernel>& kernels, const std::vector<std::string>& names,
                                       const Bindings& inputs, Scalar scalar, const std::vector<int64_t>& shape,
                                       unsigned char before) {
  const std::string target = native_targets_here().back();
  std::string folder = (std::filesystem::temp_directory_path() / "hoist-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return Diagnostic{names[0], "no temporary folder", ""};
  std::vector<std::pair<std::string, std::string>> objects;
  for (size_t i = 0; i < kernels.size(); ++i) objects.emplace_back(names[i] + ".o", kernels[i].objects[0]);
  HOIST_TRY(const std::string library, static_library(objects, target));
  std::ofstream(folder + "/kernels.a", std::ios::binary) << library;
  const std::string command = fmt::format(
      "cc -shared -o '{}/kernels.so' -Wl,--whole-archive '{}/kernels.a' -Wl,--no-whole-archive -Wl,-z,defs -lm", folder,
      folder);
  void* loaded = std::system(command.c_str()) == 0 ? dlopen((folder + "/kernels.so").c_str(), RTLD_NOW) : nullptr;
  std::filesystem::remove_all(folder);
  if (loaded == nullptr) return Diagnostic{names[0], "the native code cannot be linked or loaded", ""};
  std::vector<Tensor> results;
  for (size_t which = 0; which < kernels.size(); ++which) {
    const EmittedKernel& kernel = kernels[which];
    hoist_native_function function = nullptr;
    for (const std::string& made_for : native_targets_here()) {
      void* found = dlsym(loaded, native_symbol(names[which], made_for).c_str());
      if (found != nullptr) function = reinterpret_cast<hoist_native_function>(found);
    }
    if (function == nullptr) return Diagnostic{names[which], "the library has no such function", ""};
    const auto aligned = [](const Tensor& t) {
      const size_t bytes = (t.bytes().size() + 63) / 64 * 64;
      auto* memory = static_cast<std::byte*>(std::aligned_alloc(64, std::max<size_t>(bytes, 64)));
      std::copy(t.bytes().begin(), t.bytes().end(), memory);
      return std::unique_ptr<std::byte, void (*)(void*)>(memory, std::free);
    };
    Tensor out(scalar, shape);
    std::fill(out.data(), out.data() + out.bytes().size(), static_cast<std::byte>(before));
    std::vector<std::unique_ptr<std::byte, void (*)(void*)>> memory;
    std::vector<hoist_native_buffer> buffers(kernel.arguments.size());
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
      const bool is_result = kernel.arguments[i] == "result";
      if (!is_result && inputs.count(kernel.arguments[i]) == 0)
        return Diagnostic{names[which], "no input " + kernel.arguments[i], ""};
      memory.push_back(aligned(is_result ? out : inputs.at(kernel.arguments[i])));
      buffers[i].host = reinterpret_cast<unsigned char*>(memory.back().get());
    }
    const auto groups = static_cast<int32_t>(kernel.global[0] * kernel.global[1]), half = groups / 2;
    for (const auto& [first, count] : {std::pair{half, groups - half}, std::pair{0, half}}) {
      int32_t range[2] = {first, count};
      std::vector<void*> arguments = {&range[0], &range[1]};
      for (hoist_native_buffer& buffer : buffers) arguments.push_back(&buffer);
      if (count > 0 && function(arguments.data()) != 0) return Diagnostic{names[which], "gives an error", ""};
    }
    std::copy(memory.back().get(), memory.back().get() + out.bytes().size(), out.data());
    results.push_back(std::move(out));
  }
  dlclose(loaded);
  return results;
}

}  // namespace

std::vector<std::string> native_targets_here() {
  std::vector<std::string> found;
  for (const NativeTarget& target : native_targets()) {
    if (hoist_runs_target(target.name) != 0) found.emplace_back(target.name);
  }
  return found;
}

std::string no_half() {
  std::string reason;
  half_compiler(&reason);
  return reason;
}

Result<std::vector<Tensor>> run_all(const std::vector<EmittedKernel>& kernels, const std::vector<std::string>& names,
                                    const Bindings& inputs, Scalar scalar, const std::vector<int64_t>& shape,
                                    unsigned char before, double* seconds) {
  if (!kernels[0].objects.empty()) return run_native(kernels, names, inputs, scalar, shape, before);
  HOIST_TRY(Device * d, device());
  const std::string source = source_of(kernels);
  const bool has_halves = source.find("cl_khr_fp16 : enable") != std::string::npos;
  const Compiler compiler = has_halves ? half_compiler(nullptr) : from_source;
  HOIST_CHECK(compiler != nullptr, "ask no_half() first");
  HOIST_TRY(cl_program program, compiler(d, source, names[0]));
  cl_int error = 0;
  std::vector<Tensor> results;
  for (size_t which = 0; which < kernels.size(); ++which) {
    const EmittedKernel& kernel = kernels[which];
    const std::string& name = names[which];
    cl_kernel k = clCreateKernel(program, name.c_str(), &error);
    if (error != CL_SUCCESS) return Diagnostic{name, fmt::format("clCreateKernel gives {}", error), ""};
    Tensor out(scalar, shape);
    std::fill(out.data(), out.data() + out.bytes().size(), static_cast<std::byte>(before));
    std::vector<std::unique_ptr<Memory>> memory;
    cl_mem result = nullptr;
    for (size_t i = 0; i < kernel.arguments.size(); ++i) {
      bool is_result = kernel.arguments[i] == "result";
      if (!is_result && inputs.count(kernel.arguments[i]) == 0)
        return Diagnostic{name, "no input " + kernel.arguments[i], ""};
      const Tensor& t = is_result ? out : inputs.at(kernel.arguments[i]);
      memory.push_back(std::make_unique<Memory>());
      memory.back()->mem =
          clCreateBuffer(d->context, CL_MEM_COPY_HOST_PTR, t.bytes().size(), const_cast<std::byte*>(t.data()), &error);
      if (error != CL_SUCCESS) return Diagnostic{name, fmt::format("clCreateBuffer gives {}", error), ""};
      if (is_result) result = memory.back()->mem;
      clSetKernelArg(k, static_cast<cl_uint>(i), sizeof(cl_mem), &memory.back()->mem);
    }
    if (kernel.local_bytes > 0)
      clSetKernelArg(k, static_cast<cl_uint>(kernel.arguments.size()), kernel.local_bytes, nullptr);
    size_t global[3], local[3];
    for (size_t i = 0; i < 3; ++i) {
      global[i] = kernel.global[i];
      local[i] = kernel.local[i];
    }
    std::vector<double> times;
    for (int repeat = 0; repeat < (seconds != nullptr ? 40 : 1); ++repeat) {
      auto start = std::chrono::steady_clock::now();
      error = clEnqueueNDRangeKernel(d->queue, k, 3, nullptr, global, local, 0, nullptr, nullptr);
      if (error != CL_SUCCESS) return Diagnostic{name, fmt::format("clEnqueueNDRangeKernel gives {}", error), ""};
      clFinish(d->queue);
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    if (seconds != nullptr) {
      std::sort(times.begin(), times.end());
      *seconds = times[times.size() / 4];
    }
    clEnqueueReadBuffer(d->queue, result, CL_TRUE, 0, out.bytes().size(), out.data(), 0, nullptr, nullptr);
    clReleaseKernel(k);
    results.push_back(out);
  }
  clReleaseProgram(program);
  return results;
}

Result<Tensor> run(const EmittedKernel& kernel, const std::string& name, const Bindings& inputs, Scalar scalar,
                   const std::vector<int64_t>& shape, unsigned char before, double* seconds) {
  HOIST_TRY(auto results, run_all({kernel}, {name}, inputs, scalar, shape, before, seconds));
  return results[0];
}

Tensor random_tensor(Type type, uint64_t seed, double low, double high) {
  Scalar scalar = leaf_of(type)->scalar;
  Tensor t(scalar, shape_of(type));
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> real(low, high);
  std::uniform_int_distribution<int64_t> whole(static_cast<int64_t>(low), static_cast<int64_t>(high));
  for (int64_t i = 0; i < t.size(); ++i) {
    if (scalar == Scalar::boolean) {
      t.set_integer(i, static_cast<int64_t>(generator() & 1));
    } else if (is_float(scalar)) {
      t.set_float(i, real(generator));
    } else {
      t.set_integer(i, std::max<int64_t>(whole(generator), row(scalar).is_signed ? INT64_MIN : 0));
    }
  }
  return t;
}

std::string check(Expr e, const EmitOptions& options, double ulp, double low, double high) {
  auto kernel = emit(e, options);
  if (!kernel.ok()) return "emit: " + kernel.errors()[0].text();
  Bindings inputs;
  uint64_t seed = 1;
  for (Expr p : parameters_of(e)) inputs[p->name] = random_tensor(p->type, seed++, low, high);
  auto expected = interpret(e, inputs);
  if (!expected.ok()) return "interpret: " + expected.errors()[0].text();
  if (options.native.empty() && !options.gpu && !options.half && !native_targets_here().empty()) {
    EmitOptions native = options;
    native.native = {native_targets_here().back()};
    const std::string problem = check(e, native, ulp, low, high);
    if (!problem.empty() && problem.find("work-items of a group in native code") == std::string::npos)
      return "native code: " + problem;
  }
  auto found = run(*kernel, options.kernel_name, inputs, expected->scalar(), shape_of(e->type), 0);
  if (!found.ok()) return "run: " + found.errors()[0].text() + "\n" + kernel->source;
  for (int64_t i = 0; i < expected->size(); ++i) {
    double a = expected->float_at(i), b = found->float_at(i);
    bool same = is_float(expected->scalar())
                    ? (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b))
                    : expected->integer_at(i) == found->integer_at(i);
    if (!same && ulp > 0) {
      double step = expected->scalar() == Scalar::f64   ? 2.3e-16
                    : expected->scalar() == Scalar::f32 ? 1.2e-7
                    : expected->scalar() == Scalar::f16 ? 1e-3
                                                        : 8e-3;
      same = std::fabs(a - b) <= ulp * step * std::max(std::fabs(a), 1e-30);
    }
    if (!same) {
      return fmt::format("element {} is {} ({:a}), expected {} ({:a})\n{}\n{}", i, b, b, a, a, kernel->schedule,
                         kernel->source);
    }
  }
  return "";
}

Expr parsed(const std::string& text) {
  const auto term = parse(text);
  HOIST_CHECK(term.ok(), term.errors()[0].text());
  return *term;
}

Expr products_of_panels(int64_t panels, int64_t tiles, int64_t terms) {
  return parsed(
      fmt::format("%w : [{0}][{2}][32]f32 |> map group(1) (\\panel. %x : [{1}][{2}]f32 |> split 7\n"
                  "  |> map group(0) (map unroll (\\row. transpose panel |> split 16\n"
                  "  |> map unroll (map vec (\\column. zip(row, column) |> fold (\\s (a, b). fma(a, b, s)) 0f32)))))",
                  panels, 7 * tiles, terms));
}

}  // namespace hoist::testing
