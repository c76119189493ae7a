/* Regular expressions over strings: matches, and tokens. Expressions are untrusted; the matcher is PCRE2's DFA. */
#ifndef HOIST_HOST_EXPRESSIONS_H
#define HOIST_HOST_EXPRESSIONS_H

#include "ir/host/host_operators.h"

#ifdef HOIST_WITH_PCRE2
#define HOIST_PCRE2_MISSING 0
#else
#define HOIST_PCRE2_MISSING 1
#endif

/* Inputs: strings and one expression. Output: true for each string that it matches in whole. */
HOIST_INTERNAL int hoist_takes_match(const hoist_host_call* call);
HOIST_INTERNAL int hoist_match_strings(hoist_host_call* call);

/* Inputs: strings; expressions, none if each character is a token; three integers: 1 if the expressions match
 * separators and 0 if the single expression matches tokens, the minimum number of characters per token, and 1 if the
 * tokens of a string are enclosed in two marks. */
HOIST_INTERNAL int hoist_takes_token_count(const hoist_host_call* call);
HOIST_INTERNAL int hoist_count_tokens(hoist_host_call* call);

/* Additional input: the string that pads the tokens; the output has as many strings per element as its last
 * dimension. */
HOIST_INTERNAL int hoist_takes_tokens(const hoist_host_call* call);
HOIST_INTERNAL int hoist_make_tokens(hoist_host_call* call);

#endif
