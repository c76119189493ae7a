// The queue on NATS; no other file includes its headers.
//
// Streams (file storage); the first client or worker makes them all:
//   hoist_jobs      hoist.jobs.KEY.ID        a work queue: a message is deleted when it is acknowledged
//   hoist_answers   hoist.answers.ID         the last message of each
//   hoist_content   hoist.content.HASH.N     parts, and .size, which holds their number and is written last
//   hoist_aside     hoist.aside.ID
// Workers answer requests on hoist.workers, which is not stored.
#include <fmt/format.h>
#include <nats/nats.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

#include "ir/base/stopwatch.h"
#include "tools/base/files.h"
#include "tools/queue/queue.h"

namespace hoist::queue {
namespace {

constexpr int64_t nanoseconds = 1'000'000'000, day = 24 * 3600 * nanoseconds;
constexpr char jobs_stream[] = "hoist_jobs", answers_stream[] = "hoist_answers", content_stream[] = "hoist_content",
               aside_stream[] = "hoist_aside", workers_subject[] = "hoist.workers";
constexpr size_t most_message_bytes = size_t{1} << 19;

template <class T, void (*free)(T*)>
struct Freed {
  void operator()(T* value) const { free(value); }
};
using Options = std::unique_ptr<natsOptions, Freed<natsOptions, natsOptions_Destroy>>;
using NatsMessage = std::unique_ptr<natsMsg, Freed<natsMsg, natsMsg_Destroy>>;
using Subscription = std::unique_ptr<natsSubscription, Freed<natsSubscription, natsSubscription_Destroy>>;

std::string text_of(natsMsg* message) {
  return {natsMsg_GetData(message), static_cast<size_t>(natsMsg_GetDataLength(message))};
}

std::string last_part(const char* subject) {
  const std::string text = subject == nullptr ? "" : subject;
  return text.substr(text.rfind('.') + 1);
}

// $JS.ACK.STREAM.CONSUMER.DELIVERIES..., or with a domain and an account before the stream.
int64_t deliveries_of(const std::string& reply) {
  std::vector<std::string> parts;
  for (size_t begin = 0, dot = 0; dot != std::string::npos; begin = dot + 1) {
    dot = reply.find('.', begin);
    parts.push_back(reply.substr(begin, dot - begin));
  }
  constexpr size_t short_form = 9, usual = 4, with_domain = 6;
  const size_t at = parts.size() <= short_form ? usual : with_domain;
  int64_t out = 1;
  if (at < parts.size()) std::from_chars(parts[at].data(), parts[at].data() + parts[at].size(), out);
  return out;
}

bool is_number(const std::string& text, size_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

// The library's own pull subscriptions block for a job of a single key; requests that return at once let a worker poll
// several keys. A job is then acknowledged by a message to the subject that came with it.
struct Lease::Message {
  natsConnection* connection = nullptr;
  std::string reply;

  void say(const std::string& word) const {
    natsConnection_PublishString(connection, reply.c_str(), word.c_str());
    natsConnection_FlushTimeout(connection, 2000);
  }
};

Lease::Lease(std::unique_ptr<Message> message) : message_(std::move(message)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

void Lease::heartbeat() { natsConnection_PublishString(message_->connection, message_->reply.c_str(), "+WPI"); }

Result<Nothing> Lease::finish() {
  constexpr int64_t milliseconds = 5000;
  natsMsg* heard = nullptr;
  const natsStatus status =
      natsConnection_RequestString(&heard, message_->connection, message_->reply.c_str(), "+ACK", milliseconds);
  natsMsg_Destroy(heard);
  if (status == NATS_OK) return Nothing{};
  return Diagnostic{"job " + id_, "could not be taken from the queue",
                    "another worker may get it again, which is harmless"};
}

void Lease::give_back(double seconds) {
  message_->say(
      fmt::format("-NAK {{\"delay\": {}}}", static_cast<int64_t>(seconds * static_cast<double>(nanoseconds))));
}

struct Queue::Connection {
  std::string where;
  double patience = usual_patience;
  std::unique_ptr<natsConnection, Freed<natsConnection, natsConnection_Destroy>> connection;
  std::unique_ptr<jsCtx, Freed<jsCtx, jsCtx_Destroy>> stream;
  size_t part_bytes = most_message_bytes;
  std::map<std::string, double> leases;  ///< seconds, by key, for existing consumers
  Subscription answered, asked;
  std::function<std::string()> say;

  ~Connection() {
    // The order leaves no callback running and sends pending messages.
    answered.reset();
    asked.reset();
    stream.reset();
    if (connection) {
      natsConnection_FlushTimeout(connection.get(), 2000);
      natsConnection_Close(connection.get());
    }
  }

  // Repeats the call while the server is unreachable. All calls here are idempotent.
  template <class Call>
  Result<natsStatus> until_answered(const std::string& what, Call&& call) {
    const Stopwatch stopwatch;
    while (true) {
      jsErrCode code{};
      const natsStatus status = call(&code);
      // The stream is missing: the server has lost its data, or is another server.
      if (code == JSStreamNotFoundErr || status == NATS_NO_RESPONDERS) {
        if (make_streams() == NATS_OK && stopwatch.seconds() < patience) {
          usleep(200'000);
          continue;
        }
      }
      const bool passes = status == NATS_TIMEOUT || status == NATS_CONNECTION_DISCONNECTED ||
                          status == NATS_NO_RESPONDERS || status == NATS_IO_ERROR || status == NATS_STALE_CONNECTION ||
                          status == NATS_CONNECTION_CLOSED || code == JSClusterNotAvailErr ||
                          code == JSInsufficientResourcesErr;
      if (status == NATS_OK || status == NATS_NOT_FOUND) return status;
      if (!passes || status == NATS_CONNECTION_CLOSED || stopwatch.seconds() > patience) {
        const char* reason = nats_GetLastError(nullptr);
        return Diagnostic{where,
                          fmt::format("{} failed: {}", what,
                                      reason != nullptr && *reason != '\0' ? reason : natsStatus_GetText(status)),
                          passes ? "the server does not answer" : ""};
      }
      usleep(300'000);
    }
  }

  natsStatus make_stream(const char* name, const char* subjects, jsRetentionPolicy retention, int64_t age,
                         int64_t messages_a_subject) {
    jsStreamConfig config;
    jsStreamConfig_Init(&config);
    config.Name = name;
    config.Subjects = &subjects;
    config.SubjectsLen = 1;
    config.Retention = retention;
    config.Storage = js_FileStorage;
    config.MaxAge = age;
    config.MaxMsgsPerSubject = messages_a_subject;
    config.AllowDirect = true;
    // A stream that another process is making has its subjects before it has its name.
    const Stopwatch stopwatch;
    for (;;) {
      jsErrCode code{};
      const natsStatus status = js_AddStream(nullptr, stream.get(), &config, nullptr, &code);
      if (code == JSStreamNameExistErr) return NATS_OK;  // the stream exists with other settings, which are kept
      if (code != JSStreamSubjectOverlapErr || stopwatch.seconds() > patience) return status;
      usleep(100'000);
    }
  }

  natsStatus make_streams() {
    natsStatus status = make_stream(jobs_stream, "hoist.jobs.>", js_WorkQueuePolicy, 7 * day, 1);
    if (status == NATS_OK) status = make_stream(answers_stream, "hoist.answers.*", js_LimitsPolicy, 7 * day, 1);
    if (status == NATS_OK) status = make_stream(content_stream, "hoist.content.>", js_LimitsPolicy, day, 1);
    if (status == NATS_OK) status = make_stream(aside_stream, "hoist.aside.*", js_LimitsPolicy, 7 * day, 1);
    return status;
  }

  Result<Nothing> publish(const std::string& subject, std::string_view text) {
    const auto call = [&](jsErrCode* code) {
      return js_Publish(nullptr, stream.get(), subject.c_str(), text.data(), static_cast<int>(text.size()), nullptr,
                        code);
    };
    HOIST_TRY([[maybe_unused]] const natsStatus status, until_answered("publishing", call));
    return Nothing{};
  }

  // The last message of a subject, or none.
  Result<NatsMessage> last(const char* of_stream, const std::string& subject) {
    NatsMessage out;
    const auto call = [&](jsErrCode* code) {
      natsMsg* message = nullptr;
      const natsStatus status = js_GetLastMsg(&message, stream.get(), of_stream, subject.c_str(), nullptr, code);
      out.reset(message);
      return *code == JSNoMessageFoundErr ? NATS_NOT_FOUND : status;
    };
    HOIST_TRY([[maybe_unused]] const natsStatus status, until_answered("reading", call));
    return out;
  }

  // The direct-get API returns raw bytes. The standard API sends base64 in JSON, which costs more than all other work
  // on content.
  Result<NatsMessage> last_bytes(const char* of_stream, const std::string& subject) {
    NatsMessage out;
    bool direct = true;
    const auto call = [&](jsErrCode*) {
      jsDirectGetMsgOptions wanted;
      jsDirectGetMsgOptions_Init(&wanted);
      wanted.LastBySubject = subject.c_str();
      natsMsg* message = nullptr;
      const natsStatus status = js_DirectGetMsg(&message, stream.get(), of_stream, nullptr, &wanted);
      out.reset(message);
      // A stream that was made without direct access does not answer these requests.
      direct = status != NATS_NO_RESPONDERS;
      return direct ? status : NATS_NOT_FOUND;
    };
    HOIST_TRY([[maybe_unused]] const natsStatus status, until_answered("reading", call));
    if (!direct) return last(of_stream, subject);
    return out;
  }

  Result<Nothing> forget(const char* of_stream, const std::string& subject) {
    HOIST_TRY(const NatsMessage message, last(of_stream, subject));
    if (!message) return Nothing{};
    const auto call = [&](jsErrCode* code) {
      const natsStatus status =
          js_DeleteMsg(stream.get(), of_stream, natsMsg_GetSequence(message.get()), nullptr, code);
      return *code == JSNoMessageFoundErr || *code == JSSequenceNotFoundErr ? NATS_NOT_FOUND : status;
    };
    HOIST_TRY([[maybe_unused]] const natsStatus status, until_answered("deleting", call));
    return Nothing{};
  }

  // Makes the consumer that delivers the jobs of this key, if it does not exist.
  Result<Nothing> make_consumer(const std::string& key, double lease_seconds) {
    if (leases.contains(key)) return Nothing{};
    const std::string name = "device_" + key, subject = "hoist.jobs." + key + ".*";
    jsConsumerConfig config;
    jsConsumerConfig_Init(&config);
    config.Durable = name.c_str();
    config.FilterSubject = subject.c_str();
    config.AckPolicy = js_AckExplicit;
    config.AckWait = static_cast<int64_t>(lease_seconds * static_cast<double>(nanoseconds));
    config.MaxDeliver = -1;  // workers count deliveries and set jobs aside themselves
    config.MaxAckPending = 100'000;
    config.MaxWaiting = 16'384;
    double lease = lease_seconds;
    const auto add = [&](jsErrCode* code) {
      jsConsumerInfo* info = nullptr;
      natsStatus status = js_GetConsumerInfo(&info, stream.get(), jobs_stream, name.c_str(), nullptr, code);
      if (status == NATS_NOT_FOUND || *code == JSConsumerNotFoundErr) {
        *code = {};
        status = js_AddConsumer(&info, stream.get(), jobs_stream, &config, nullptr, code);
      }
      if (status == NATS_OK && info != nullptr)
        lease = static_cast<double>(info->Config->AckWait) / static_cast<double>(nanoseconds);
      jsConsumerInfo_Destroy(info);
      return status;
    };
    HOIST_TRY([[maybe_unused]] const natsStatus added, until_answered("making a consumer", add));
    leases[key] = lease;
    return Nothing{};
  }
};

Queue::Queue() : connection_(std::make_unique<Connection>()) {}
Queue::Queue(Queue&&) noexcept = default;
Queue& Queue::operator=(Queue&&) noexcept = default;
Queue::~Queue() = default;

Result<Queue> Queue::connect(const QueueOptions& options, double patience, Absence* why) {
  Absence ignored;
  Absence& absence = why == nullptr ? ignored : *why;
  absence = Absence::refused;
  const std::string where = shown_url(options);
  natsOptions* made = nullptr;
  if (natsOptions_Create(&made) != NATS_OK) return Diagnostic{where, "no memory for a connection", ""};
  const Options use(made);
  natsStatus status = NATS_OK;
  const auto also = [&](natsStatus next) { status = status == NATS_OK ? next : status; };
  // The library reads names and passwords from URLs, but takes several URLs as a list.
  std::vector<std::string> urls;
  for (size_t begin = 0, comma = 0; comma != std::string::npos; begin = comma + 1) {
    comma = options.url.find(',', begin);
    urls.push_back(options.url.substr(begin, comma - begin));
  }
  std::vector<const char*> servers;
  for (const std::string& url : urls) servers.push_back(url.c_str());
  also(natsOptions_SetServers(use.get(), servers.data(), static_cast<int>(servers.size())));
  if (status != NATS_OK) return Diagnostic{where, "is not an address of a queue", "nats://HOST:4222"};
  if (!options.token.empty()) {
    HOIST_TRY(std::string token, read_file(options.token, size_t{1} << 16U));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    also(natsOptions_SetToken(use.get(), token.c_str()));
  }
  for (const std::string* file : {&options.credentials, &options.authority, &options.certificate, &options.key}) {
    if (!file->empty()) {
      HOIST_TRY([[maybe_unused]] const std::string content, read_file(*file, size_t{1} << 20U));
    }
  }
  if (!options.credentials.empty())
    also(natsOptions_SetUserCredentialsFromFiles(use.get(), options.credentials.c_str(), nullptr));
  if (!options.authority.empty() || !options.certificate.empty()) also(natsOptions_SetSecure(use.get(), true));
  if (!options.authority.empty()) also(natsOptions_LoadCATrustedCertificates(use.get(), options.authority.c_str()));
  if (!options.certificate.empty())
    also(natsOptions_LoadCertificatesChain(use.get(), options.certificate.c_str(), options.key.c_str()));
  also(natsOptions_SetName(use.get(), "hoist"));
  also(natsOptions_SetMaxReconnect(use.get(), -1));
  also(natsOptions_SetReconnectWait(use.get(), 500));
  also(natsOptions_SetTimeout(use.get(), 5000));
  also(natsOptions_SetRetryOnFailedConnect(use.get(), false, nullptr, nullptr));
  // The library would print errors on standard error; commands report the relevant ones themselves.
  also(natsOptions_SetErrorHandler(
      use.get(), [](natsConnection*, natsSubscription*, natsStatus, void*) {}, nullptr));
  if (status != NATS_OK) return Diagnostic{where, std::string("cannot be used: ") + nats_GetLastError(nullptr), ""};
  Queue out;
  Connection& it = *out.connection_;
  it.where = where;
  it.patience = patience;
  natsConnection* connection = nullptr;
  status = natsConnection_Connect(&connection, use.get());
  it.connection.reset(connection);
  if (status != NATS_OK) {
    const char* reason = nats_GetLastError(nullptr);
    const std::string text = reason == nullptr || *reason == '\0' ? natsStatus_GetText(status) : reason;
    if (status == NATS_CONNECTION_AUTH_FAILED || text.find("uthorization") != std::string::npos)
      return Diagnostic{where, "refuses the connection: " + text, "--queue-token FILE or --queue-credentials FILE"};
    if (status == NATS_SSL_ERROR || status == NATS_SECURE_CONNECTION_REQUIRED ||
        status == NATS_SECURE_CONNECTION_WANTED)
      return Diagnostic{where, "no TLS with it: " + text,
                        "--queue-authority FILE names who has signed its certificate"};
    absence = Absence::no_worker_answers;
    return Diagnostic{where, "there is no queue: " + text, "nats-server --jetstream starts one"};
  }
  it.part_bytes =
      std::min<size_t>(most_message_bytes, static_cast<size_t>(natsConnection_GetMaxPayload(connection)) / 2);
  jsCtx* stream = nullptr;
  if (natsConnection_JetStream(&stream, connection, nullptr) != NATS_OK)
    return Diagnostic{where, "no memory for a connection", ""};
  it.stream.reset(stream);
  if ((status = it.make_streams()) != NATS_OK) {
    const char* reason = nats_GetLastError(nullptr);
    const bool passes = status == NATS_TIMEOUT || status == NATS_CONNECTION_DISCONNECTED;
    if (passes) absence = Absence::no_worker_answers;
    return Diagnostic{where, fmt::format("keeps no jobs: {}", reason == nullptr ? natsStatus_GetText(status) : reason),
                      "start the server with --jetstream"};
  }
  return out;
}

// ---- Content --------------------------------------------------------------------------------------------------------

Result<std::string> Queue::put(const std::string& content) {
  const std::string hash = hash_of(content), subject = "hoist.content." + hash;
  HOIST_TRY(const NatsMessage there, connection_->last(content_stream, subject + ".size"));
  // Old content is put again, so that it does not expire while it is in use.
  constexpr int64_t young = day / 2;
  const int64_t now = nats_NowInNanoSeconds();
  if (there && now - natsMsg_GetTime(there.get()) < young) return hash;
  const size_t part = connection_->part_bytes;
  for (size_t i = 0; i * part < content.size(); ++i)
    HOIST_TRY_VOID(
        connection_->publish(fmt::format("{}.{}", subject, i), std::string_view(content).substr(i * part, part)));
  HOIST_TRY_VOID(connection_->publish(subject + ".size", fmt::format("{} {}", content.size(), part)));
  return hash;
}

Result<std::string> Queue::get(const std::string& hash, size_t limit) {
  const std::string subject = "hoist.content." + hash, where = "content " + hash;
  HOIST_TRY(const NatsMessage sizes, connection_->last(content_stream, subject + ".size"));
  if (!sizes) return Diagnostic{where, "is not on the queue", "it stays there for a day: run the command again"};
  const Diagnostic damaged{where, "is damaged", "run the command again in a day, or purge the stream hoist_content"};
  const std::string text = text_of(sizes.get());
  const size_t space = text.find(' ');
  size_t size = 0, part = 0;
  if (space == std::string::npos || !is_number(text.substr(0, space), size) ||
      !is_number(text.substr(space + 1), part) || part == 0)
    return damaged;
  if (size > limit) return Diagnostic{where, fmt::format("has {} bytes, at most {} are accepted", size, limit), ""};
  std::string out;
  constexpr size_t most_believed = size_t{1} << 26U;  // limit for an untrusted size
  out.reserve(std::min(size, most_believed));
  for (size_t i = 0; out.size() < size; ++i) {
    HOIST_TRY(const NatsMessage message, connection_->last_bytes(content_stream, fmt::format("{}.{}", subject, i)));
    if (!message || natsMsg_GetDataLength(message.get()) == 0) return damaged;
    out.append(natsMsg_GetData(message.get()), static_cast<size_t>(natsMsg_GetDataLength(message.get())));
  }
  if (out.size() != size || hash_of(out) != hash) return damaged;
  return out;
}

// ---- Jobs -----------------------------------------------------------------------------------------------------------

Result<Nothing> Queue::offer(const std::string& key, const std::string& id, const std::string& text) {
  HOIST_TRY(const bool there, is_offered(key, id));
  if (there) return Nothing{};
  return connection_->publish(fmt::format("hoist.jobs.{}.{}", key, id), text);
}

Result<bool> Queue::is_offered(const std::string& key, const std::string& id) {
  HOIST_TRY(const NatsMessage there, connection_->last(jobs_stream, fmt::format("hoist.jobs.{}.{}", key, id)));
  return there != nullptr;
}

Result<std::optional<Lease>> Queue::take(const std::vector<std::string>& keys, double lease_seconds) {
  constexpr int64_t milliseconds = 2000;
  for (const std::string& key : keys) {
    HOIST_TRY_VOID(connection_->make_consumer(key, lease_seconds));
    natsMsg* heard = nullptr;
    const std::string ask = fmt::format("$JS.API.CONSUMER.MSG.NEXT.{}.device_{}", jobs_stream, key);
    const natsStatus status = natsConnection_RequestString(&heard, connection_->connection.get(), ask.c_str(),
                                                           R"({"batch":1,"no_wait":true})", milliseconds);
    const NatsMessage message(heard);
    // The server is unreachable or has lost its data: the next call makes the consumer again.
    if (status != NATS_OK || natsMsg_IsNoResponders(heard)) connection_->leases.erase(key);
    if (status != NATS_OK || natsMsg_GetReply(heard) == nullptr) continue;
    auto held = std::make_unique<Lease::Message>();
    held->connection = connection_->connection.get();
    held->reply = natsMsg_GetReply(heard);
    Lease out(std::move(held));
    out.id_ = last_part(natsMsg_GetSubject(heard));
    out.text_ = text_of(heard);
    out.seconds_ = connection_->leases[key];
    out.deliveries_ = deliveries_of(natsMsg_GetReply(heard));
    return std::optional<Lease>(std::move(out));
  }
  return std::optional<Lease>();
}

Result<int64_t> Queue::waiting() {
  int64_t out = 0;
  const auto call = [&](jsErrCode* code) {
    jsStreamInfo* info = nullptr;
    const natsStatus status = js_GetStreamInfo(&info, connection_->stream.get(), jobs_stream, nullptr, code);
    if (status == NATS_OK) out = static_cast<int64_t>(info->State.Msgs);
    jsStreamInfo_Destroy(info);
    return status;
  };
  HOIST_TRY([[maybe_unused]] const natsStatus status, connection_->until_answered("counting jobs", call));
  return out;
}

// ---- Answers --------------------------------------------------------------------------------------------------------

Result<Nothing> Queue::answer(const std::string& id, const std::string& text) {
  return connection_->publish("hoist.answers." + id, text);
}

Result<std::optional<std::string>> Queue::answer_to(const std::string& id) {
  HOIST_TRY(const NatsMessage message, connection_->last(answers_stream, "hoist.answers." + id));
  return message ? std::optional(text_of(message.get())) : std::nullopt;
}

Result<Nothing> Queue::forget_answer(const std::string& id) {
  return connection_->forget(answers_stream, "hoist.answers." + id);
}

Result<std::optional<std::string>> Queue::next_answered(double seconds) {
  if (!connection_->answered) {
    natsSubscription* made = nullptr;
    const auto call = [&](jsErrCode*) {
      return natsConnection_SubscribeSync(&made, connection_->connection.get(), "hoist.answers.*");
    };
    HOIST_TRY([[maybe_unused]] const natsStatus status, connection_->until_answered("subscribing", call));
    connection_->answered.reset(made);
  }
  natsMsg* message = nullptr;
  const natsStatus status = natsSubscription_NextMsg(&message, connection_->answered.get(),
                                                     std::max<int64_t>(1, static_cast<int64_t>(seconds * 1e3)));
  const NatsMessage owned(message);
  if (status == NATS_OK) return std::optional(last_part(natsMsg_GetSubject(message)));
  if (status == NATS_CONNECTION_CLOSED) return Diagnostic{connection_->where, "the connection is closed", ""};
  return std::optional<std::string>();
}

// ---- Jobs set aside -------------------------------------------------------------------------------------------------

Result<Nothing> Queue::set_aside(const std::string& id, const std::string& text) {
  return connection_->publish("hoist.aside." + id, text);
}

Result<Nothing> Queue::forget_aside(const std::string& id) {
  return connection_->forget(aside_stream, "hoist.aside." + id);
}

Result<std::vector<std::string>> Queue::aside() {
  uint64_t first = 1, last = 0;
  const auto bounds = [&](jsErrCode* code) {
    jsStreamInfo* info = nullptr;
    const natsStatus status = js_GetStreamInfo(&info, connection_->stream.get(), aside_stream, nullptr, code);
    if (status == NATS_OK) first = info->State.FirstSeq, last = info->State.LastSeq;
    jsStreamInfo_Destroy(info);
    return status;
  };
  HOIST_TRY([[maybe_unused]] const natsStatus status, connection_->until_answered("listing", bounds));
  std::vector<std::string> out;
  for (uint64_t sequence = std::max<uint64_t>(first, 1); sequence <= last; ++sequence) {
    natsMsg* message = nullptr;
    const natsStatus got = js_GetMsg(&message, connection_->stream.get(), aside_stream, sequence, nullptr, nullptr);
    const NatsMessage owned(message);
    if (got == NATS_OK) out.push_back(text_of(message));
  }
  return out;
}

// ---- Workers --------------------------------------------------------------------------------------------------------

Result<std::vector<std::string>> Queue::ask_workers(double seconds) {
  natsInbox* inbox = nullptr;
  if (natsInbox_Create(&inbox) != NATS_OK) return Diagnostic{connection_->where, "no memory for a request", ""};
  const std::unique_ptr<natsInbox, Freed<natsInbox, natsInbox_Destroy>> reply(inbox);
  natsSubscription* made = nullptr;
  natsStatus status = natsConnection_SubscribeSync(&made, connection_->connection.get(), inbox);
  const Subscription heard(made);
  if (status == NATS_OK)
    status = natsConnection_PublishRequest(connection_->connection.get(), workers_subject, inbox, "", 0);
  std::vector<std::string> out;
  const Stopwatch stopwatch;
  while (status == NATS_OK) {
    const auto left = static_cast<int64_t>((seconds - stopwatch.seconds()) * 1e3);
    if (left <= 0) break;
    natsMsg* message = nullptr;
    status = natsSubscription_NextMsg(&message, made, left);
    const NatsMessage owned(message);
    if (status == NATS_OK && !natsMsg_IsNoResponders(message)) out.push_back(text_of(message));
  }
  return out;
}

Result<Nothing> Queue::answer_as_worker(std::function<std::string()> say) {
  connection_->say = std::move(say);
  natsSubscription* made = nullptr;
  const auto heard = [](natsConnection* connection, natsSubscription*, natsMsg* message, void* closure) {
    const NatsMessage owned(message);
    const std::string text = static_cast<Connection*>(closure)->say();
    if (natsMsg_GetReply(message) != nullptr)
      natsConnection_Publish(connection, natsMsg_GetReply(message), text.data(), static_cast<int>(text.size()));
  };
  const auto call = [&](jsErrCode*) {
    return natsConnection_Subscribe(&made, connection_->connection.get(), workers_subject, heard, connection_.get());
  };
  HOIST_TRY([[maybe_unused]] const natsStatus status, connection_->until_answered("subscribing", call));
  connection_->asked.reset(made);
  natsConnection_FlushTimeout(connection_->connection.get(), 2000);  // guarantees that later requests are answered
  return Nothing{};
}

}  // namespace hoist::queue
