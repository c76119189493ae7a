#include "neural_rules/choice/preferences.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "ir/text/parse/near_miss.h"

namespace hoist {
namespace {

constexpr std::pair<std::string_view, Wish> wishes[] = {
    {"pin", Wish::pin}, {"forbid", Wish::forbid}, {"prefer", Wish::prefer}};

std::string_view word_of(Wish wish) {
  for (const auto& [word, of] : wishes) {
    if (of == wish) return word;
  }
  HOIST_CHECK(false, "a preference without a keyword");
}

std::string join(const std::set<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

/// A word of a line; a quoted * is a layer of that name, not all layers.
struct Word {
  std::string text;
  bool quoted = false;
};

// A quoted word from the quote at `i`; false if it has no end.
bool read_quoted(const std::string& line, size_t& i, std::string& out) {
  for (++i; i < line.size(); ++i) {
    if (line[i] == '"') {
      ++i;
      return true;
    }
    if (line[i] == '\\' && i + 1 < line.size() && (line[i + 1] == '"' || line[i + 1] == '\\')) ++i;
    out += line[i];
  }
  return false;
}

Result<std::vector<Word>> words_of(const std::string& line, const std::string& place) {
  std::vector<Word> out;
  for (size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
    } else if (line[i] == '#') {
      break;
    } else if (line[i] == '"') {
      Word& word = out.emplace_back(Word{"", true});
      if (!read_quoted(line, i, word.text))
        return Diagnostic{place, "a quote is not closed", "a quote closes on its line"};
    } else {
      const size_t end = std::min(line.find_first_of(" \t\r#", i), line.size());
      out.push_back({line.substr(i, end - i), false});
      i = end;
    }
  }
  return out;
}

Result<Preference> statement_of(const std::vector<Word>& words, int line, const std::string& place) {
  Preference out;
  out.line = line;
  const auto known =
      std::find_if(std::begin(wishes), std::end(wishes), [&](const auto& wish) { return wish.first == words[0].text; });
  if (known == std::end(wishes)) {
    const std::string near = did_you_mean(words[0].text, {"pin", "forbid", "prefer"});
    return Diagnostic{place, "unknown statement " + words[0].text,
                      near.empty() ? "statements are pin, forbid and prefer" : near};
  }
  out.wish = known->second;
  if (words.size() != 3) {
    return Diagnostic{place, fmt::format("expected {} LAYER RULE, found {} words", known->first, words.size()),
                      "names with spaces are quoted"};
  }
  out.layer = words[1].text;
  out.all_layers = words[1].text == "*" && !words[1].quoted;
  out.rule = words[2].text;
  if (out.rule == "*" && out.wish != Wish::forbid)
    return Diagnostic{place, fmt::format("{} needs the name of one rule", known->first), "hoist rules lists them"};
  return out;
}

class PreferenceApplication {
 public:
  PreferenceApplication(const Preferences& preferences, std::span<const SiteCandidates> sites,
                        std::span<const NeuralRule> rules)
      : preferences_(preferences), sites_(sites) {
    for (const NeuralRule& rule : rules) kinds_.emplace(rule.name, rule.kind);
    for (const SiteCandidates& of : sites) layers_[of.site->layer].push_back(&of);
  }

  Result<std::vector<AllowedRules>> run() {
    for (const Preference& statement : preferences_.statements) check_names(statement);
    for (size_t i = 0; i < preferences_.statements.size(); ++i) check_contradictions(i);
    if (!problems_.empty()) return problems_;
    std::vector<AllowedRules> out;
    for (const SiteCandidates& site : sites_) out.push_back(allowed_at(site));
    return out;
  }

 private:
  void problem(const Preference& at, std::string what, std::string hint = "") {
    problems_.push_back({fmt::format("{}:{}", preferences_.where, at.line), std::move(what), std::move(hint)});
  }

  void check_names(const Preference& statement) {
    const bool any_rule = statement.rule == "*";
    if (!any_rule && !kinds_.contains(statement.rule)) {
      std::vector<std::string> names;
      for (const auto& [name, kind] : kinds_) names.push_back(name);
      problem(statement, "unknown rule " + statement.rule, did_you_mean(statement.rule, names));
    }
    if (statement.all_layers) return;
    const auto layer = layers_.find(statement.layer);
    if (layer == layers_.end()) {
      std::vector<std::string> names;
      for (const auto& [name, sites] : layers_) names.push_back(name);
      problem(statement, "no layer " + statement.layer + " takes a rule", did_you_mean(statement.layer, names));
    } else if (!any_rule && statement.wish != Wish::forbid && kinds_.contains(statement.rule)) {
      check_applies(statement, layer->second);
    }
  }

  void check_applies(const Preference& statement, const std::vector<const SiteCandidates*>& sites) {
    std::set<std::string> others;
    for (const SiteCandidates* of : sites) {
      if (std::find(of->rules.begin(), of->rules.end(), statement.rule) != of->rules.end()) return;
      others.insert(of->rules.begin(), of->rules.end());
    }
    problem(statement, fmt::format("rule {} cannot be used at layer {}", statement.rule, statement.layer),
            others.empty() ? "" : "these can: " + join(others));
  }

  // Compares a statement with earlier ones only, so that each pair is reported once, at its second line.
  void check_contradictions(size_t second) {
    const Preference& b = preferences_.statements[second];
    for (size_t first = 0; first < second; ++first) {
      const Preference& a = preferences_.statements[first];
      if (a.all_layers != b.all_layers || a.layer != b.layer || !contradict(a, b)) continue;
      problem(
          b,
          fmt::format("{} {} contradicts {} {} of line {}", word_of(b.wish), b.rule, word_of(a.wish), a.rule, a.line),
          "leave one of them out");
    }
  }

  bool contradict(const Preference& a, const Preference& b) const {
    if (a.wish == Wish::forbid || b.wish == Wish::forbid)
      return a.wish != b.wish && (a.rule == b.rule || a.rule == "*" || b.rule == "*");
    // Several preferred rules leave a choice between them; a pinned rule leaves none.
    const auto kind_a = kinds_.find(a.rule), kind_b = kinds_.find(b.rule);
    return (a.wish == Wish::pin || b.wish == Wish::pin) && a.rule != b.rule && kind_a != kinds_.end() &&
           kind_b != kinds_.end() && kind_a->second == kind_b->second;
  }

  // The statements about a rule at a site: the layer's own statements first, then the statements for all layers.
  std::optional<Wish> wish_for(const Site& site, const std::string& rule, bool all_layers) const {
    for (const Preference& statement : preferences_.statements) {
      if (statement.all_layers != all_layers || (!all_layers && statement.layer != site.layer)) continue;
      if (statement.rule == rule || statement.rule == "*") return statement.wish;
    }
    return std::nullopt;
  }

  AllowedRules allowed_at(const SiteCandidates& of) const {
    AllowedRules out;
    for (bool all_layers : {false, true}) {
      std::vector<std::string> pinned, preferred;
      for (const std::string& rule : of.rules) {
        // Statements for all layers do not apply to rules that a layer's own statements name.
        if (all_layers && wish_for(*of.site, rule, false)) continue;
        const std::optional<Wish> wish = wish_for(*of.site, rule, all_layers);
        if (wish == Wish::pin) pinned.push_back(rule);
        if (wish == Wish::prefer) preferred.push_back(rule);
      }
      if (!pinned.empty()) return {false, pinned};
      if (!preferred.empty()) return {true, preferred};
    }
    for (const std::string& rule : of.rules) {
      const std::optional<Wish> own = wish_for(*of.site, rule, false), general = wish_for(*of.site, rule, true);
      if (own.value_or(general.value_or(Wish::prefer)) != Wish::forbid) out.rules.push_back(rule);
    }
    return out;
  }

  const Preferences& preferences_;
  std::span<const SiteCandidates> sites_;
  std::map<std::string, SiteKind> kinds_;  ///< site kinds of rules, by name
  std::map<std::string, std::vector<const SiteCandidates*>> layers_;
  Diagnostics problems_;
};

}  // namespace

Result<Preferences> parse_preferences(const std::string& text, const std::string& where) {
  Preferences out{where, {}};
  Diagnostics problems;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string place = fmt::format("{}:{}", where, number);
    const Result<std::vector<Word>> words = words_of(line, place);
    if (!words) {
      problems.push_back(words.errors()[0]);
      continue;
    }
    if (words->empty()) continue;
    const Result<Preference> statement = statement_of(*words, number, place);
    if (statement)
      out.statements.push_back(*statement);
    else
      problems.push_back(statement.errors()[0]);
  }
  if (!problems.empty()) return problems;
  return out;
}

Result<std::vector<AllowedRules>> apply_preferences(const Preferences& preferences,
                                                    std::span<const SiteCandidates> sites,
                                                    std::span<const NeuralRule> rules) {
  return PreferenceApplication(preferences, sites, rules).run();
}

}  // namespace hoist
