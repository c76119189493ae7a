// Replaces nats_queue.cpp in builds without NATS: every connection fails.
#include "tools/queue/queue.h"

namespace hoist::queue {
namespace {

Diagnostic absent() {
  return {"--queue", "this hoist is built without NATS", "build with libnats-dev and -DHOIST_QUEUE=ON"};
}

}  // namespace

struct Lease::Message {};
struct Queue::Connection {};
Lease::Lease(std::unique_ptr<Message> message) : message_(std::move(message)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;
void Lease::heartbeat() {}
Result<Nothing> Lease::finish() { return absent(); }
void Lease::give_back(double) {}
Queue::Queue() = default;
Queue::Queue(Queue&&) noexcept = default;
Queue& Queue::operator=(Queue&&) noexcept = default;
Queue::~Queue() = default;
Result<Queue> Queue::connect(const QueueOptions&, double, Absence* why) {
  if (why != nullptr) *why = Absence::refused;
  return absent();
}
Result<std::string> Queue::put(const std::string&) { return absent(); }
Result<std::string> Queue::get(const std::string&, size_t) { return absent(); }
Result<Nothing> Queue::offer(const std::string&, const std::string&, const std::string&) { return absent(); }
Result<bool> Queue::is_offered(const std::string&, const std::string&) { return absent(); }
Result<std::optional<Lease>> Queue::take(const std::vector<std::string>&, double) { return absent(); }
Result<Nothing> Queue::answer(const std::string&, const std::string&) { return absent(); }
Result<std::optional<std::string>> Queue::answer_to(const std::string&) { return absent(); }
Result<Nothing> Queue::forget_answer(const std::string&) { return absent(); }
Result<std::optional<std::string>> Queue::next_answered(double) { return absent(); }
Result<Nothing> Queue::set_aside(const std::string&, const std::string&) { return absent(); }
Result<std::vector<std::string>> Queue::aside() { return absent(); }
Result<Nothing> Queue::forget_aside(const std::string&) { return absent(); }
Result<int64_t> Queue::waiting() { return absent(); }
Result<std::vector<std::string>> Queue::ask_workers(double) { return absent(); }
Result<Nothing> Queue::answer_as_worker(std::function<std::string()>) { return absent(); }

}  // namespace hoist::queue
