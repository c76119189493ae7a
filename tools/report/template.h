// The report page without its data, joined at build time from the files of page/ by embed.cmake: it holds the marks
// <!--SUMMARY--> and <!--DATA--> once each, in this order. For the page writer only.
#pragma once

#include <string_view>

namespace hoist {

extern const std::string_view report_template;

}  // namespace hoist
