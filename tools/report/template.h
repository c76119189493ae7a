// The report page without its data, joined at build time from the files of page/ by embed.cmake: it holds the marks
// <!--SUMMARY-->, <!--KERNELS--> and <!--DATA--> once each, in this order. For the writers of pages only.
#pragma once

#include <string>
#include <string_view>

namespace hoist {

extern const std::string_view report_template;

/// The template up to the beginning of the body, for pages that have a body of their own and no program.
std::string page_head();

/// Text for between tags.
std::string safe_in_html(const std::string& text);

/// A time as the page's program writes it: three digits and a unit, from ns to s. A round one, at an axis, has no more
/// digits than it needs.
std::string time_on_page(double seconds);
std::string round_time_on_page(double seconds);

}  // namespace hoist
