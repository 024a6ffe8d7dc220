// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-lsp-server/CheckRun.h"

#include "support/FileIO.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace mgpu::tools::lsp {

using nlohmann::json;
namespace fs = std::filesystem;

std::vector<std::string> optionsIn(const std::string &text) {
  // A comment in a file that somebody sent must not name files to write.
  static constexpr std::array allowed{"--arg",       "--role",   "--entry",
                                      "--devices",   "--assign", "--node-limit",
                                      "--roll-from", "--target", "--schedule",
                                      "--grid",      "--mesh",   "--shard"};
  const std::string mark = "// mgpu-tune:";
  std::vector<std::string> options;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.compare(0, mark.size(), mark) != 0)
      continue;
    std::istringstream words(line.substr(mark.size()));
    for (std::string name, value; words >> name >> value;)
      if (std::find(allowed.begin(), allowed.end(), name) != allowed.end())
        options.insert(options.end(), {name, value});
  }
  return options;
}

/// The byte that "%41" at `at` stands for; none where these are no such digits.
static std::optional<char> escapedAt(const std::string &uri, size_t at) {
  unsigned char byte = 0;
  const char *first = uri.data() + at + 1, *end = first + 2;
  if (uri[at] != '%' || at + 2 >= uri.size() ||
      std::from_chars(first, end, byte, 16).ptr != end)
    return std::nullopt;
  return char(byte);
}

/// The folder of "file:///home/me/a%20b/c.mlir"; empty for others. A percent
/// sign that begins no escape is one of the name.
static std::string folderOf(const std::string &uri) {
  const std::string scheme = "file://";
  if (uri.compare(0, scheme.size(), scheme) != 0)
    return "";
  std::string path;
  for (size_t k = scheme.size(); k < uri.size(); ++k) {
    const std::optional<char> escaped = escapedAt(uri, k);
    path += escaped.value_or(uri[k]);
    k += escaped ? 2 : 0;
  }
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  return fs::is_directory(folder, error) ? folder.string() : "";
}

std::optional<CheckRun> CheckRun::start(const std::string &uri,
                                        const std::string &text) {
  CheckRun run(uri, text);
  // A file in memory, as a pipe would have to be fed.
  const Descriptor input(::memfd_create("program", MFD_CLOEXEC));
  int ends[2];
  if (!input.isOpen() ||
      writeFully(input.get(), std::as_bytes(std::span(text))) != 0 ||
      ::lseek(input.get(), 0, SEEK_SET) != 0 || ::pipe2(ends, O_CLOEXEC) != 0)
    return std::nullopt;
  run.output = ends[0];
  const Descriptor to(ends[1]);
  std::vector<std::string> words{"mgpu-tune", "check", "-", "--json"};
  for (std::string &option : optionsIn(text))
    words.push_back(std::move(option));
  std::vector<char *> arguments;
  for (std::string &word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, to.get(), 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  if (const std::string folder = folderOf(uri); !folder.empty())
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const bool isRunning = posix_spawn(&run.child, "/proc/self/exe", &actions,
                                     nullptr, arguments.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  if (!isRunning)
    return std::nullopt;
  return run;
}

CheckRun::CheckRun(CheckRun &&other) noexcept
    : uri(std::move(other.uri)), text(std::move(other.text)),
      said(std::move(other.said)), child(std::exchange(other.child, -1)),
      output(std::exchange(other.output, -1)) {}

CheckRun::~CheckRun() {
  if (output >= 0)
    ::close(output);
  if (child < 0)
    return;
  ::kill(child, SIGKILL);
  int status;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
}

bool CheckRun::fill() {
  char bytes[65536];
  ssize_t count;
  do
    count = ::read(output, bytes, sizeof bytes);
  while (count < 0 && errno == EINTR);
  if (count > 0)
    said.append(bytes, size_t(count));
  return count > 0;
}

/// From a "<stdin>:12:3" to the end of the word there; the first line of a
/// program for what has no place.
static json rangeOf(const std::string &location, const std::string &text) {
  size_t line = 0, column = 0;
  const size_t second = location.rfind(':');
  const size_t first = second == 0 || second == std::string::npos
                           ? std::string::npos
                           : location.rfind(':', second - 1);
  if (first != std::string::npos) {
    line = size_t(std::max(std::atoi(location.c_str() + first + 1) - 1, 0));
    column = size_t(std::max(std::atoi(location.c_str() + second + 1) - 1, 0));
  }
  std::istringstream lines(text);
  std::string here;
  for (size_t k = 0; k <= line && std::getline(lines, here); ++k)
    ;
  size_t end = std::min(column, here.size());
  while (end < here.size() &&
         !std::isspace(static_cast<unsigned char>(here[end])))
    ++end;
  return {{"start", {{"line", line}, {"character", column}}},
          {"end", {{"line", line}, {"character", std::max(end, column)}}}};
}

json CheckRun::diagnostics() const {
  json out = json::array();
  const json found = json::parse(said, nullptr, /*allow_exceptions=*/false);
  if (!found.is_object())
    return out;
  auto add = [&](int severity, const std::string &location,
                 const std::string &message) {
    out.push_back({{"range", rangeOf(location, text)},
                   {"severity", severity},
                   {"source", "mgpu-tune check"},
                   {"message", message}});
  };
  constexpr int error = 1, warning = 2, information = 3;
  for (const json &message : found.value("messages", json::array())) {
    const std::string severity = message.value("severity", ""),
                      location = message.value("location", ""),
                      words = message.value("text", "");
    if (severity != "note")
      add(severity == "error"     ? error
          : severity == "warning" ? warning
                                  : information,
          location, words);
    else if (!out.empty()) // a note belongs to what stands before it
      out.back()["relatedInformation"].push_back(
          {{"location", {{"uri", uri}, {"range", rangeOf(location, text)}}},
           {"message", words}});
  }
  // A fault of the command line, or a feature that is not supported, is no
  // message.
  if (out.empty() && found.contains("error")) {
    const json &fault = found["error"];
    const std::string kind = fault.value("kind", "");
    std::string words = fault.value("message", "");
    if (kind == "usage")
      words += " (a line \"// mgpu-tune: --arg NAME=VALUE\" gives options)";
    add(kind == "invalid"       ? error
        : kind == "unsupported" ? warning
                                : information,
        fault.value("location", ""), words);
  }
  return out;
}

} // namespace mgpu::tools::lsp
