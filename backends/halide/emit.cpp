#include "backends/halide/emit.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "backends/halide/emitter.h"
#include "backends/halide/native/native.h"
#include "backends/halide/passes/passes.h"
#include "backends/halide/source.h"

namespace hoist {
namespace {

namespace H = Halide;
using emission::Emitter;

// Errors come as exceptions. Most of Halide's warnings are about style; one means that the kernel is wrong.
class Reporter : public H::CompileTimeErrorReporter {
  void warning(const char* message) override {
    if (std::string_view(message).find("guaranteed to fail") != std::string_view::npos) throw H::CompileError(message);
  }
  [[noreturn]] void error(const char* message) override { throw H::CompileError(message); }
};

struct Launch {
  std::string name;
  std::array<uint64_t, 3> groups{}, items{};
  uint64_t local_bytes = 0;
};

// The launches of a lowered program, and whether a launch is inside a loop of the host.
class FindLaunches : public H::Internal::IRVisitor {
 public:
  std::vector<Launch> launches;
  bool repeated = false;
  bool unknown = false;

 private:
  using IRVisitor::visit;
  int depth_ = 0;
  void visit(const H::Internal::For* op) override {
    ++depth_;
    IRVisitor::visit(op);
    --depth_;
  }
  void visit(const H::Internal::Call* op) override {
    if (op->name == "halide_opencl_run") {
      Launch launch;
      launch.name = op->args[1].as<H::Internal::StringImm>()->value;
      auto number = [&](size_t i) -> uint64_t {
        auto n = H::Internal::as_const_int(H::Internal::simplify(op->args[i]));
        unknown |= !n || *n < 0;
        return n ? static_cast<uint64_t>(*n) : 0;
      };
      for (size_t d = 0; d < 3; ++d) {
        launch.groups[d] = number(2 + d);
        launch.items[d] = number(5 + d);
      }
      launch.local_bytes = number(8);
      repeated |= depth_ > 0;
      launches.push_back(launch);
    }
    IRVisitor::visit(op);
  }
};

// Adds the names in the sizes of a term.
void add_sizes(Expr e, std::set<Expr>& seen, std::set<std::string>& names) {
  if (!seen.insert(e).second) return;
  for (const Nat& n : e->sizes) {
    if (!n.is_constant()) names.merge(names_of(n));
  }
  for (Type t = e->type; t != nullptr && t->is_array(); t = t->element) {
    if (!t->size.is_constant()) names.merge(names_of(t->size));
  }
  for (Expr c : e->children) add_sizes(c, seen, names);
}

// Halide orders the operands of sums by name, and names new variables by counters that all threads share: t9 comes
// after t10. With equally many digits in every name the order is the order of creation, and kernels are the same bytes
// whatever else is compiled at the same time.
void begin_names_late() {
  static const bool begun = [] {
    constexpr int first = 100'000;
    for (int i = 0; i < first; ++i) H::Internal::unique_name('t');
    return true;
  }();
  static_cast<void>(begun);
}

void describe(const Emitter& emitter, const std::set<std::string>& prefetched, EmittedKernel& out) {
  out.schedule = emitter.schedule();
  for (const std::string& array : prefetched)
    out.schedule += fmt::format("{} is prefetched\n", emitter.argument_names().at(array));
  out.worst_ulp = emitter.worst_ulp();
  out.exact = out.worst_ulp == 0;
  out.divides = emitter.divides();
}

// A Func takes one list of passes, so each target has its own.
Result<EmittedKernel> emit_native(Expr e, const EmitOptions& options) {
  EmittedKernel out;
  for (const std::string& target : options.native) {
    Emitter emitter(e, options);
    H::Func result = emitter.build();
    HOIST_TRY(auto code, emission::native_code(result, emitter, options.kernel_name, target));
    out.objects.push_back(std::move(code.object));
    out.open_global = {floor_division(emitter.groups(), emitter.outside_divided()), emitter.outside_divided()};
    for (size_t d = 0; d < out.open_global.size(); ++d)
      out.global[d] = static_cast<uint64_t>(out.open_global[d].constant().value_or(1));
    out.arguments.clear();
    for (const H::Argument& argument : emitter.arguments())
      out.arguments.push_back(emitter.argument_names().at(argument.name));
    out.arguments.emplace_back("result");
    describe(emitter, code.prefetched, out);
  }
  out.source = out.schedule;
  return out;
}

Result<EmittedKernel> emit_checked(Expr e, const EmitOptions& options) {
  begin_names_late();
  if (e->free > 0 || e->has_meta) return Diagnostic{"", "only closed terms can be compiled", ""};
  std::set<Expr> seen;
  std::set<std::string> sizes;
  add_sizes(e, seen, sizes);
  for (const std::string& name : options.sizes) sizes.erase(name);
  if (!sizes.empty())
    return Diagnostic{"", "the term has the symbolic size " + *sizes.begin(), "substitute constants first"};
  if (!options.native.empty()) return emit_native(e, options);
  if (!options.sizes.empty()) return Diagnostic{"", "OpenCL kernels have no symbolic sizes", "compile native code"};
  Emitter emitter(e, options);
  H::Func result = emitter.build();
  std::set<std::string> prefetched;
  auto passes = emission::make_passes({.result = result.name(),
                                       .loops = emitter.group_loops(),
                                       .extents = emitter.group_extents(),
                                       .inputs = emitter.input_arrays(),
                                       .prefetched = &prefetched});
  for (auto& pass : passes) result.add_custom_lowering_pass(pass.get(), [] {});
  H::Target target(H::Target::Linux, H::Target::X86, 64,
                   {H::Target::OpenCL, H::Target::CLDoubles, H::Target::NoAsserts, H::Target::NoBoundsQuery,
                    H::Target::StrictFloat, H::Target::NoRuntime});
  H::Module module = result.compile_to_module(emitter.arguments(), "hoist", target);

  FindLaunches found;
  for (const auto& f : module.functions()) f.body.accept(&found);
  if (found.launches.size() != 1 || found.repeated || found.unknown) {
    return Diagnostic{"", fmt::format("the term became {} launches where one was expected", found.launches.size()),
                      "put group maps outermost"};
  }
  const Launch& launch = found.launches[0];
  auto buffer = module.get_device_code_buffer();
  std::string printed(reinterpret_cast<const char*>(buffer.get()->data()), buffer.get()->size_in_bytes());
  while (!printed.empty() && printed.back() == '\0') printed.pop_back();

  EmittedKernel out;
  std::map<std::string, std::string> names = {{H::Internal::c_print_name(result.name()), "result"}},
                                     originals = {{"result", "result"}};
  for (const auto& [internal, name] : emitter.argument_names()) {
    std::string c_name = emission::identifier(name);
    while (originals.count(c_name)) c_name += "_";
    originals[c_name] = name;
    names[H::Internal::c_print_name(internal)] = c_name;
  }
  for (size_t d = 0; d < 3; ++d) {
    out.local[d] = std::max<uint64_t>(launch.items[d], 1);
    out.global[d] = std::max<uint64_t>(launch.groups[d], 1) * out.local[d];
  }
  out.divided = emitter.divided_dimension();
  out.local_bytes = launch.local_bytes;
  HOIST_TRY(auto text,
            emission::clean(printed, launch.name, options.kernel_name, names, out.local, out.local_bytes > 0));
  if (options.is_fused) {
    HOIST_CHECK(out.local_bytes == 0 && out.local == (std::array<uint64_t, 3>{1, 1, 1}),
                "kernel " + options.kernel_name + ": its groups share memory, and its launch runs other kernels too");
    emission::make_group_function(text, options.kernel_name);
  }
  if (text.source.find(emission::half_call) != std::string::npos) out.source = emission::half_opening;
  out.source += text.source;
  for (const std::string& argument : text.arguments) {
    auto place = originals.find(argument);
    HOIST_CHECK(place != originals.end(), "an unexpected argument: " + argument);
    out.arguments.push_back(place->second);
  }
  describe(emitter, prefetched, out);
  return out;
}

}  // namespace

Result<EmittedKernel> emit(Expr low_level, const EmitOptions& options) {
  static Reporter reporter;
  static const bool reporting = (H::set_custom_compile_time_error_reporter(&reporter), true);
  static_cast<void>(reporting);
  try {
    return emit_checked(low_level, options);
  } catch (const emission::Unsupported& e) {
    Diagnostic diagnostic = e.diagnostic;
    diagnostic.where = options.kernel_name;
    return diagnostic;
  } catch (const H::Error& e) {
    std::string what = e.what();
    while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
    return Diagnostic{options.kernel_name, "halide refuses the term: " + what, ""};
  }
}

}  // namespace hoist
