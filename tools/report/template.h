// The report page without its data, joined at build time from the files of page/ by embed.cmake: it has the marks
// <!--SUMMARY-->, <!--KERNELS--> and <!--DATA--> once each, in this order. Only for the code that writes pages.
#pragma once

#include <string>
#include <string_view>

namespace hoist {

extern const std::string_view report_template;

/// The template up to the start of the body, for static pages.
std::string page_head();

/// Escapes text between tags.
std::string safe_in_html(const std::string& text);

/// A time in the format of the page's program: three digits and a unit, from ns to s. The round form, for axes, has
/// only the digits that it needs.
std::string time_on_page(double seconds);
std::string round_time_on_page(double seconds);

}  // namespace hoist
