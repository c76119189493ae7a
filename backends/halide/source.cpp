#include "backends/halide/source.h"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <sstream>
#include <unordered_map>

#include "backends/halide/emitter.h"
#include "ir/plan/plan.h"

namespace hoist::emission {
namespace {

bool starts_identifier(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_identifier(char c) { return starts_identifier(c) || std::isdigit(static_cast<unsigned char>(c)); }

// The end of the word that begins at a position, and the beginning of the word that ends there.
size_t word_end(const std::string& text, size_t at) {
  while (at < text.size() && continues_identifier(text[at])) ++at;
  return at;
}
size_t word_begin(const std::string& text, size_t at) {
  while (at > 0 && continues_identifier(text[at - 1])) --at;
  return at;
}

bool all_digits(const std::string& s) { return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos; }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string trimmed(const std::string& s) {
  size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

// Halide's name without its counters: "_fold_2_s1_steps5__x" gives "fold_steps_x".
std::string plain_name(const std::string& name) {
  std::string out;
  std::istringstream in(name);
  for (std::string part; std::getline(in, part, '_');) {
    if (part.empty() || all_digits(part)) continue;
    if (part.size() > 1 && part[0] == 's' && all_digits(part.substr(1))) continue;
    while (!part.empty() && (std::isdigit(static_cast<unsigned char>(part.back())) || part.back() == '$'))
      part.pop_back();
    if (part.empty()) continue;
    out += (out.empty() ? "" : "_") + part;
  }
  return out.empty() ? "t" : out;
}

// Halide 21 writes lane 10 of a shuffled vector as .s10, which OpenCL reads as lanes 1 and 0; the name of lane 10 is
// .sa.
std::string lane(const std::string& member) {
  if (member.size() != 3 || member.rfind("s1", 0) != 0 || member[2] < '0' || member[2] > '5') return member;
  return {'s', static_cast<char>('a' + (member[2] - '0'))};
}

class Renamer {
 public:
  explicit Renamer(std::map<std::string, std::string> fixed) : fixed_(std::move(fixed)) {
    for (const auto& [from, to] : fixed_) used_[to] = 1;
  }

  // Identifiers that Halide made begin with an underscore or belong to gpu loops; all others are the language's.
  std::string line(const std::string& in) {
    std::string out;
    for (size_t i = 0; i < in.size();) {
      if (!starts_identifier(in[i])) {
        if (std::isdigit(static_cast<unsigned char>(in[i]))) {  // a number with its suffix is not an identifier
          while (i < in.size() && (continues_identifier(in[i]) || in[i] == '.')) out += in[i++];
        } else {
          out += in[i++];
        }
        continue;
      }
      const size_t end = word_end(in, i);
      std::string word = in.substr(i, end - i);
      bool member = i > 0 && in[i - 1] == '.';
      out += member ? lane(word) : renamed(word);
      i = end;
    }
    return out;
  }

 private:
  std::string renamed(const std::string& word) {
    if (auto found = fixed_.find(word); found != fixed_.end()) return found->second;
    if (word[0] != '_' || word.rfind("__", 0) == 0) return word;
    std::string base = all_digits(word.substr(1)) ? "t" : plain_name(word);
    int count = used_[base]++;
    std::string name = base == "t"  ? fmt::format("t{}", count)
                       : count == 0 ? base
                                    : fmt::format("{}_{}", base, count + 1);
    return fixed_[word] = name;
  }

  std::map<std::string, std::string> fixed_;
  std::map<std::string, int> used_;
};

// Vectors of small numbers in global memory are loaded and stored by the preamble's functions.
std::string with_unaligned(std::string line) {
  if (line.find("vload") == std::string::npos && line.find("vstore") == std::string::npos) return line;
  for (const std::string lanes : {"4", "8", "16"}) {
    for (const std::string kind : {"char*", "uchar*", "short*", "ushort*"}) {
      const std::string pointer = "(__global " + kind + ")", load = "vload" + lanes + "(0, " + pointer,
                        store = "vstore" + lanes + "(", offset = ",0, " + pointer;
      for (size_t at = 0; (at = line.find(load, at)) != std::string::npos;)
        line.replace(at, load.size(), "hoist_load" + lanes + "(" + pointer);
      const size_t at = line.find(store), behind = line.find(offset);
      if (at == std::string::npos || behind == std::string::npos) continue;
      line.replace(behind, offset.size(), ", " + pointer);
      line.replace(at, store.size(), "hoist_store" + lanes + "(");
    }
  }
  return line;
}

// Moves the constant of an index t + 96 into the address. As a sum of integers it is one more operation, and LLVM's SLP
// pass combines the sums of several loads into a vector that it then splits again. Accesses are p[t7] ((__global float4
// *)p)[t7] vload4(0, (__global float*)p + t7)
class Addresses {
 public:
  explicit Addresses(const std::vector<std::string>& arrays) : arrays_(arrays.begin(), arrays.end()) {}

  std::string line(const std::string& in) {
    if (define(in)) return in;
    return with_places(with_elements(in));
  }

  // Removes the definitions of unused indices.
  std::string without_unused(const std::vector<std::string>& lines) const {
    std::unordered_map<std::string, int> uses;
    for (const std::string& line : lines) count(line, 1, uses);
    std::vector<bool> goes(lines.size(), false);
    for (size_t i = lines.size(); i-- > 0;) {
      const auto known = definitions_.find(lines[i]);
      goes[i] = known != definitions_.end() && uses[known->second] == 1;
      if (goes[i]) count(lines[i], -1, uses);
    }
    std::string out;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!goes[i]) out += lines[i] + "\n";
    }
    return out;
  }

 private:
  struct Place {
    std::string base;
    int64_t offset = 0;
  };

  // The position of a variable's name if the text there is a numbered variable.
  const Place* place_at(const std::string& text, size_t at) const {
    if (places_.empty() || text[at] != 't') return nullptr;
    const auto found = places_.find(text.substr(at, word_end(text, at) - at));
    return found == places_.end() ? nullptr : &found->second;
  }

  // "int t7 = t6 + 96;", or such a sum divided: "int t8 = t7 >> 4;".
  bool define(const std::string& in) {
    const size_t start = in.find_first_not_of(' ');
    if (start == std::string::npos || in.compare(start, 5, "int t") != 0 || in.back() != ';') return false;
    const size_t name = start + 4, name_end = word_end(in, name);
    if (in.compare(name_end, 3, " = ") != 0) return false;
    const size_t left = name_end + 3, left_end = word_end(in, left);
    if (left_end == left || !starts_identifier(in[left])) return false;
    const bool is_sum = in.compare(left_end, 3, " + ") == 0, is_quotient = in.compare(left_end, 4, " >> ") == 0;
    if (!is_sum && !is_quotient) return false;
    const size_t right = left_end + (is_sum ? 3 : 4);
    const std::string number = in.substr(right, in.size() - right - 1);
    if (!all_digits(number) || number.size() > 9) return false;
    Place place = {in.substr(left, left_end - left), std::stoll(number)};
    if (is_quotient) {
      const Place* sum = place_at(in, left);
      const auto shift = place.offset;
      if (sum == nullptr || shift > 30 || sum->offset % (int64_t{1} << shift) != 0) return false;
      place = {fmt::format("({} >> {})", sum->base, shift), sum->offset >> shift};
    }
    const std::string defined = in.substr(name, name_end - name);
    places_[defined] = std::move(place);
    definitions_[in] = defined;
    return true;
  }

  std::string with_elements(std::string line) const {
    for (size_t open = 0; (open = line.find("[t", open)) != std::string::npos; ++open) {
      const Place* place = place_at(line, open + 1);
      const size_t end = word_end(line, open + 1);
      if (place == nullptr || line[end] != ']' || open == 0) continue;
      const bool in_vectors = line[open - 1] == ')';
      const size_t name_end = in_vectors ? open - 1 : open, name = word_begin(line, name_end);
      if (arrays_.count(line.substr(name, name_end - name)) == 0) continue;
      const size_t begin = in_vectors ? line.rfind("((__global ", name) : name;
      if (begin == std::string::npos) continue;
      const size_t pointer = in_vectors ? begin + 1 : begin;
      const std::string access =
          fmt::format("({} + {})[{}]", line.substr(pointer, name_end - pointer), place->base, place->offset);
      line.replace(begin, end + 1 - begin, access);
      open = begin;
    }
    return line;
  }

  std::string with_places(std::string line) const {
    for (size_t plus = 0; (plus = line.find(" + t", plus)) != std::string::npos; ++plus) {
      const Place* place = place_at(line, plus + 3);
      const size_t end = word_end(line, plus + 3);
      if (place == nullptr || line[end] != ')') continue;
      const size_t name = word_begin(line, plus);
      if (name < 2 || line.compare(name - 2, 2, "*)") != 0 || arrays_.count(line.substr(name, plus - name)) == 0)
        continue;
      line.replace(plus + 3, end - plus - 3, fmt::format("{} + {}", place->base, place->offset));
    }
    return line;
  }

  static void count(const std::string& line, int by, std::unordered_map<std::string, int>& uses) {
    for (size_t i = 0; i < line.size();) {
      const size_t end = word_end(line, i);
      if (end > i && line[i] == 't') uses[line.substr(i, end - i)] += by;
      i = std::max(end, i + 1);
    }
  }

  std::set<std::string> arrays_;
  std::unordered_map<std::string, Place> places_;
  std::unordered_map<std::string, std::string> definitions_;  // the name that a line defines
};

// Halide omits the fence of barriers that only order a later store after earlier loads; the language requires one there
// too.
std::string fenced(std::string line) {
  static const std::string none = "barrier(0);", some = "barrier(0 | ";
  if (size_t at = line.find(none); at != std::string::npos)
    line.replace(at, none.size(), "barrier(CLK_LOCAL_MEM_FENCE);");
  if (size_t at = line.find(some); at != std::string::npos) line.replace(at, some.size(), "barrier(");
  return line;
}

std::string replace_words(const std::string& line, const std::map<std::string, std::string>& words) {
  std::string out;
  for (size_t i = 0; i < line.size();) {
    if (!starts_identifier(line[i])) {
      out += line[i++];
      continue;
    }
    const size_t end = word_end(line, i);
    std::string word = line.substr(i, end - i);
    auto found = words.find(word);
    out += found == words.end() ? word : found->second;
    i = end;
  }
  return out;
}

// Halide cannot print an array as an argument, so the name of the array is printed as a string.
std::string with_arrays(std::string line) {
  const std::string start = std::string(prefetch_marker) + "(\"";
  const size_t at = line.find(start);
  if (at == std::string::npos) return line;
  const size_t name = at + start.size();
  line.erase(line.find('"', name), 1);
  line.erase(name - 1, 1);
  return line;
}

// Comments carry Halide's names too: "// produce fold$3".
std::string plain_comment(const std::string& line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '$') {
      while (i + 1 < line.size() && std::isdigit(static_cast<unsigned char>(line[i + 1]))) ++i;
      continue;
    }
    out += line[i];
  }
  return out;
}

}  // namespace

std::string identifier(const std::string& name) {
  std::string out;
  for (char c : name) out += continues_identifier(c) ? c : '_';
  if (out.empty() || !starts_identifier(out[0]) || out[0] == '_') out = "p" + out;
  return out;
}

Result<KernelText> clean(const std::string& printed, const std::string& printed_name, const std::string& kernel_name,
                         const std::map<std::string, std::string>& names, std::array<uint64_t, 3> local,
                         bool uses_local_memory) {
  std::vector<std::string> lines = lines_of(printed);
  size_t start = 0;
  std::string opening = "__kernel void " + printed_name + "(";
  std::map<std::string, std::string> spaces;
  for (; start < lines.size() && lines[start].find(opening) == std::string::npos; ++start) {
    std::istringstream words(lines[start]);
    std::string define, macro, space;
    if (words >> define >> macro >> space && define == "#define" && macro.rfind("__address_space_", 0) == 0)
      spaces[macro] = space;
  }
  if (start == lines.size())
    return Diagnostic{kernel_name, "halide's source does not hold the kernel", "this is a fault of hoist"};

  std::map<std::string, std::string> fixed;
  for (const auto& [from, to] : names) fixed[from] = to;
  Renamer renamer(fixed);
  KernelText out;
  std::vector<std::string> parameters;
  size_t i = start + 1;
  for (; i < lines.size(); ++i) {
    std::string line = trimmed(lines[i]);
    bool last = line.find(')') != std::string::npos;
    std::string declaration = trimmed(line.substr(0, line.find_first_of(",)")));
    if (!declaration.empty()) parameters.push_back(declaration);
    if (last) break;
  }
  std::string signature;
  for (const std::string& p : parameters) {
    bool is_local = p.rfind("__local", 0) == 0;
    if (is_local && !uses_local_memory) continue;
    std::string line = renamer.line(replace_words(p, spaces));
    // Halide's spacing between type and name varies.
    if (!is_local) out.arguments.push_back(line.substr(line.find_last_of(" *") + 1));
    signature += (signature.empty() ? "    " : ",\n    ") + line;
  }
  out.source = fmt::format("__kernel __attribute__((reqd_work_group_size({}, {}, {})))\nvoid {}(\n{})\n", local[0],
                           local[1], local[2], kernel_name, signature);
  Addresses addresses(out.arguments);
  std::vector<std::string> body;
  for (++i; i < lines.size(); ++i) {
    std::string line = lines[i];
    std::string content = trimmed(line);
    if (content.empty() || content.rfind("#undef", 0) == 0) continue;
    if (content.rfind("#define __address_space_", 0) == 0) {
      std::istringstream words(content);
      std::string define, macro, space;
      words >> define >> macro >> space;
      spaces[macro] = space;
      continue;
    }
    if (content.starts_with('#') || content.find("__kernel") != std::string::npos) break;
    if (content.rfind("// kernel", 0) == 0) continue;
    if (content.rfind("//", 0) == 0) {
      size_t indent = line.find_first_not_of(' ');
      body.push_back(line.substr(0, indent) + plain_comment(content));
      continue;
    }
    body.push_back(with_unaligned(addresses.line(renamer.line(replace_words(fenced(with_arrays(line)), spaces)))));
  }
  out.source += addresses.without_unused(body);
  return out;
}

namespace {

/// `by` does not contain `what`.
void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) text.replace(at, what.size(), by);
}

}  // namespace

void make_group_function(KernelText& kernel, const std::string& kernel_name) {
  const std::string& source = kernel.source;
  const size_t name = source.find("\nvoid " + kernel_name + "(\n"), body = source.find(")\n{", name);
  HOIST_CHECK(name != std::string::npos && body != std::string::npos, "a kernel of another form than clean() gives it");
  std::string group = source.substr(name + 1, body - name - 1);
  const std::string start = "void " + kernel_name + "(\n";
  group.replace(0, start.size(),
                "static __attribute__((noinline)) void " + group_function(kernel_name) +
                    "(\n    int group_0, int group_1, int group_2,\n");
  // Inlining a function with restrict leaves a mark that Oclgrind 21.10 does not know, or makes restrict apply between
  // the steps as well, so the runtime defines when functions are not inlined.
  replace_all(group, "*restrict ", "*HOIST_RESTRICT ");
  // Groups of launches have one work-item. PoCL inlines every function that reads the work-item's number into the
  // kernel, for which it generates code three times.
  std::string inside = source.substr(body);
  for (const char* dimension : {"0", "1", "2"}) {
    replace_all(inside, fmt::format("get_group_id({})", dimension), fmt::format("group_{}", dimension));
    replace_all(inside, fmt::format("get_local_id({})", dimension), "0");
  }
  kernel.source = group + inside;
}

}  // namespace hoist::emission
