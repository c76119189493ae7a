// Counts the executed work of a term by symbolic evaluation; work.h states the meaning of the counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/language/expression.h"

namespace hoist {

struct CountedTerm {
  struct Node {
    Expr node;         ///< a call, cast or selection
    int64_t executed;  ///< number of executions
    int64_t needed;    ///< number of combinations of the positions that it depends on
  };
  std::vector<Node> nodes;
  std::map<std::string, int64_t> read;  ///< bytes of each parameter, at most all
};
/// False for a term that is too large or nests too deeply.
bool count_nodes(Expr term, CountedTerm& out);

}  // namespace hoist
