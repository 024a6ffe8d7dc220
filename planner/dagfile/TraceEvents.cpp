// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dagfile/TraceEvents.h"

#include "support/LineText.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

namespace mgpu::planner {

namespace {

using Json = nlohmann::json;

// About 3 thousand years: times count from 1970.
constexpr double maxTimeUs = 1e17;
// 30 days: a profiler whose clock failed writes centuries, in which all other
// durations of a plan would be lost.
constexpr double maxDurationUs = 30 * 86400e6;
// A step of a large model has some ten thousand; memory for this many is there.
constexpr size_t maxEvents = size_t(1) << 25;

/// The parser calls it value by value.
class Handler final : public Json::json_sax_t {
public:
  Handler(std::string_view text, std::string_view source)
      : text(text), source(source) {}

  std::vector<TraceEvent> events;
  std::optional<Error> error;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return number(double(value), value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(double(value), int64_t(std::min<uint64_t>(value, INT64_MAX)));
  }
  bool number_float(number_float_t value, const string_t &) override {
    bool fits = std::abs(value) < 9e18;
    return number(value, fits ? int64_t(value) : -1);
  }
  bool string(string_t &value) override {
    if (!isOfEvent())
      return true;
    // Older profilers write some numbers as strings.
    double parsed = 0;
    auto [end, code] =
        std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (!value.empty() && code == std::errc() &&
        end == value.data() + value.size() && std::abs(parsed) < 9e18)
      number(parsed, int64_t(parsed));
    if (depth == eventDepth) {
      if (field == "ph")
        phase = value;
      else if (field == "cat")
        category = value;
      else if (field == "name")
        event.name = value;
    } else if (field == "cuda_sync_kind") {
      syncKind = value;
    } else if (field == "Collective name") {
      event.collective = value;
    } else if (field == "dtype") {
      event.elementType = value;
    }
    return true;
  }
  bool binary(binary_t &) override { return true; }

  bool start_object(std::size_t) override {
    if (++depth == eventDepth && isInEvents) {
      event = {};
      phase.clear();
      category.clear();
      syncKind.clear();
      hasStart = hasDuration = hasDevice = false;
    }
    isInArgs =
        isInArgs || (isInEvents && depth == eventDepth + 1 && field == "args");
    return true;
  }
  bool key(string_t &name) override {
    field = name;
    return true;
  }
  bool end_object() override {
    if (depth == eventDepth + 1)
      isInArgs = false;
    return depth-- != eventDepth || !isInEvents || finish();
  }
  bool start_array(std::size_t) override {
    ++depth;
    if (depth == 1) // the older form, which is the events alone
      eventDepth = 2;
    if (depth + 1 == eventDepth && (depth == 1 || field == "traceEvents"))
      isInEvents = hasEvents = true;
    return true;
  }
  bool end_array() override {
    if (depth-- + 1 == eventDepth)
      isInEvents = false;
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &) override {
    isNoJson = true;
    bool isCut = position >= text.size();
    error = Error{
        ErrorKind::Invalid,
        isCut ? fmt::format("{}: the trace is cut short after {} "
                            "bytes: record it again",
                            source, text.size())
              : fmt::format("{}: not valid JSON at {}", source,
                            placeIn(text, std::max<size_t>(position, 1) - 1))};
    return false;
  }

  std::string_view text;
  bool hasEvents = false, isNoJson = false;
  /// From when to when a step lasted, on the GPU where that was recorded.
  struct Mark {
    double beginUs = 0, endUs = 0;
    bool isGpus = false;
  };
  std::map<std::string, Mark, std::less<>> steps;

private:
  void noteStep() {
    const bool isGpus = category == "gpu_user_annotation";
    if (!(isGpus || category == "user_annotation") ||
        !event.name.starts_with("ProfilerStep#") || !hasStart || !hasDuration)
      return;
    const Mark mark{event.startUs, event.startUs + event.durationUs, isGpus};
    Mark &known = steps.try_emplace(event.name, mark).first->second;
    if (isGpus && !known.isGpus)
      known = mark;
    else if (isGpus == known.isGpus)
      known = {std::min(known.beginUs, mark.beginUs),
               std::max(known.endUs, mark.endUs), isGpus};
  }

  bool isOfEvent() const {
    return isInEvents &&
           (depth == eventDepth || (depth == eventDepth + 1 && isInArgs));
  }

  bool number(double value, int64_t integer) {
    if (!isOfEvent())
      return true;
    if (depth == eventDepth) {
      if (field == "ts") {
        event.startUs = value;
        hasStart = true;
      } else if (field == "dur") {
        event.durationUs = value;
        hasDuration = true;
      }
      return true;
    }
    auto count = [&] { return uint64_t(std::max<int64_t>(integer, 0)); };
    if (field == "device") {
      event.device = integer;
      hasDevice = true;
    } else if (field == "stream") {
      event.stream = integer;
    } else if (field == "correlation") {
      event.correlation = integer;
    } else if (field == "wait_on_stream") {
      event.waitsForStream = integer;
    } else if (field == "wait_on_cuda_event_record_corr_id") {
      event.waitsForRecord = integer;
    } else if (field == "bytes") {
      event.bytes = count();
    } else if (field == "Group size") {
      event.groupSize = count();
    } else if (field == "In msg nelems") {
      event.elementsIn = count();
    } else if (field == "Out msg nelems") {
      event.elementsOut = count();
    }
    return true;
  }

  bool finish() {
    size_t index = number_++;
    noteStep();
    if (phase != "X" || !classify())
      return true;
    auto isTime = [](double us) { return us >= 0 && us < maxTimeUs; };
    if (event.isWork() && event.durationUs > maxDurationUs) {
      error = Error{ErrorKind::Invalid,
                    fmt::format("{}: event {} \"{}\" of {} lasts {} us, more "
                                "than 30 days: the clock of the recording was "
                                "wrong; remove the event, or record again",
                                source, index, event.name.substr(0, 60),
                                category, event.durationUs)};
      return false;
    }
    const char *missing =
        !hasStart || !isTime(event.startUs) ? "\"ts\""
        : event.isWork() && (!hasDuration || !isTime(event.durationUs))
            ? "\"dur\""
        : event.isWork() && (!hasDevice || event.device < 0)
            ? "device in its args"
        : event.isWork() && event.stream < 0 ? "stream in its args"
                                             : nullptr;
    if (missing) {
      error = Error{ErrorKind::Invalid,
                    fmt::format("{}: event {} \"{}\" of {} has no usable {}",
                                source, index, event.name.substr(0, 60),
                                category, missing)};
      return false;
    }
    if (events.size() >= maxEvents) {
      error = Error{ErrorKind::Unsupported,
                    fmt::format("{}: the trace has more than {} kernels, "
                                "copies and waits: record fewer steps",
                                source, maxEvents)};
      return false;
    }
    events.push_back(std::move(event));
    return true;
  }

  /// Whether the event is one of those kept; sets its kind.
  bool classify() {
    if (category == "kernel" || category == "Kernel")
      event.kind = TraceEvent::Kernel;
    else if (category == "gpu_memcpy" || category == "Memcpy")
      event.kind = TraceEvent::Copy;
    else if (category == "gpu_memset" || category == "Memset")
      event.kind = TraceEvent::Fill;
    else if (category != "cuda_sync")
      return false;
    else if (syncKind == "Stream Wait Event")
      event.kind = TraceEvent::StreamWait;
    else if (syncKind == "Event Sync")
      event.kind = TraceEvent::EventSync;
    else if (syncKind == "Stream Sync")
      event.kind = TraceEvent::StreamSync;
    else // "Context Sync", "Device Sync", and what is not known
      event.kind = TraceEvent::DeviceSync;
    return true;
  }

  std::string source, field, phase, category, syncKind;
  TraceEvent event;
  // Depths: 1 the file, 2 traceEvents, 3 an event, 4 its args.
  size_t depth = 0, eventDepth = 3, number_ = 0;
  bool isInEvents = false, isInArgs = false;
  bool hasStart = false, hasDuration = false, hasDevice = false;
};

} // namespace

bool isTrace(std::string_view text) {
  // A DAG says what it is at its start; a trace may have pages of properties
  // before its events.
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '[')
    return text.find("\"ph\"") != std::string_view::npos;
  return text.substr(0, 4096).find("\"mgpu-dag/") == std::string_view::npos &&
         text.find("\"traceEvents\"") != std::string_view::npos;
}

/// The events of a step.
static Result<std::vector<TraceEvent>> eventsOf(const Handler &handler,
                                                std::string_view source,
                                                std::string_view step) {
  const auto mark = handler.steps.find(step);
  std::vector<TraceEvent> out;
  if (mark == handler.steps.end()) {
    std::string names;
    for (const auto &[name, unused] : handler.steps)
      names += (names.empty() ? "" : ", ") + name;
    return fail(ErrorKind::Usage,
                fmt::format("--step {}: {} has {}", step, source,
                            names.empty() ? "no steps (ProfilerStep#N): record "
                                            "it with a schedule"
                                          : names));
  }
  auto isInside = [&](const TraceEvent &event) {
    return event.isWork() && event.startUs >= mark->second.beginUs &&
           event.startUs < mark->second.endUs;
  };
  int64_t first = INT64_MAX, last = -1;
  for (const TraceEvent &event : handler.events)
    if (isInside(event)) {
      first = std::min(first, event.correlation);
      last = std::max(last, event.correlation);
    }
  for (const TraceEvent &event : handler.events)
    if (isInside(event) || (!event.isWork() && event.correlation >= first &&
                            event.correlation <= last))
      out.push_back(event);
  if (last < 0)
    return fail(
        ErrorKind::Invalid,
        fmt::format("{}: no kernel or copy began within {}", source, step));
  return out;
}

Result<std::vector<TraceEvent>> readTraceEvents(std::string_view text,
                                                std::string_view source,
                                                std::string_view step) {
  auto handler = std::make_unique<Handler>(text, source);
  bool parsed = Json::sax_parse(text.begin(), text.end(), handler.get());
  if (!parsed && handler->isNoJson) {
    const std::string mended = mendTrace(text);
    handler = std::make_unique<Handler>(text, source);
    parsed = Json::sax_parse(mended.begin(), mended.end(), handler.get());
  }
  if (handler->error)
    return fail(*handler->error);
  if (!parsed)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: the trace cannot be read", source));
  if (!handler->hasEvents)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: \"traceEvents\" is not an array of the file's "
                            "object: this is not a trace of a profiler",
                            source));
  if (!step.empty())
    return eventsOf(*handler, source, step);
  return std::move(handler->events);
}

namespace {

/// Whether a backslash and what follows it, `rest`, are an escape of JSON.
bool isEscape(std::string_view rest) {
  if (rest.size() < 2)
    return true; // the text is cut short, which is said of it as it is
  if (rest[1] != 'u')
    return std::string_view("\"\\/bfnrt").find(rest[1]) !=
           std::string_view::npos;
  const std::string_view digits = rest.substr(2, 4);
  return std::all_of(digits.begin(), digits.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// Mends the string that begins at `at`; gives where it ends.
size_t mendString(std::string &text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte >= 0x7f)
      text[at] = '?';
    else if (byte != '\\')
      continue;
    else if (isEscape(std::string_view(text).substr(at)))
      ++at;
    else
      text[at] = '/';
  }
  return at;
}

/// Where a word of letters that begins at `at` ends.
size_t endOfWord(std::string_view text, size_t at) {
  while (at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])))
    ++at;
  return at;
}

bool isNoNumber(std::string_view word) {
  std::string lower(word);
  for (char &c : lower)
    c = char(std::tolower(static_cast<unsigned char>(c)));
  return lower == "inf" || lower == "infinity" || lower == "nan";
}

/// Whether nothing but the end of a list follows the comma at `at`.
bool isLastComma(std::string_view text, size_t at) {
  const size_t next = text.find_first_not_of(" \t\r\n", at + 1);
  return next != std::string_view::npos &&
         (text[next] == ']' || text[next] == '}');
}

} // namespace

std::string mendTrace(std::string_view given) {
  std::string text(given);
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      at = mendString(text, at);
    } else if (text[at] == ',') {
      if (isLastComma(text, at))
        text[at] = ' ';
    } else if (std::isalpha(static_cast<unsigned char>(text[at]))) {
      const size_t end = endOfWord(text, at);
      const size_t first = at - size_t(at > 0 && text[at - 1] == '-');
      if (isNoNumber(std::string_view(text).substr(at, end - at))) {
        std::fill(text.begin() + first, text.begin() + end, ' ');
        text.replace(first, 2, "-1");
      }
      at = end - 1;
    }
  }
  return text;
}

} // namespace mgpu::planner
