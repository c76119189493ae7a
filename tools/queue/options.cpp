#include <CLI/CLI.hpp>

#include "tools/queue/queue.h"

namespace hoist::queue {

CLI::Option* add_queue_options(CLI::App& command, QueueOptions& options, const std::string& what) {
  CLI::Option* queue =
      command
          .add_option("--queue", options.url,
                      what + ": nats://HOST:PORT of a NATS server with JetStream (tls:// for TLS), several with commas")
          ->type_name("URL");
  const auto file = [&](const char* name, std::string& path, const char* text) {
    command.add_option(name, path, text)->type_name("FILE")->needs(queue);
  };
  file("--queue-token", options.token, "the file with the server's token");
  file("--queue-credentials", options.credentials, "a credentials file of NATS (.creds)");
  file("--queue-authority", options.authority,
       "TLS: the certificates of the authorities for the server's certificate, in PEM");
  file("--queue-certificate", options.certificate, "TLS: this side's certificate, in PEM");
  file("--queue-key", options.key, "TLS: its private key, in PEM");
  return queue;
}

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
