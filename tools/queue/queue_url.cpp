#include "tools/queue/queue.h"

namespace hoist::queue {

std::string shown_url(const QueueOptions& options) {
  std::string out;
  for (size_t begin = 0, comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = options.url.find(',', begin);
    std::string url = options.url.substr(begin, comma - begin);
    const size_t scheme = url.find("://"), host = scheme == std::string::npos ? 0 : scheme + 3, at = url.rfind('@');
    if (at != std::string::npos && at >= host) url.erase(host, at + 1 - host);
    out += (out.empty() ? "" : ",") + url;
  }
  return out;
}

}  // namespace hoist::queue
