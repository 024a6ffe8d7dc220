// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that are wrong: texts with lines, numbers and words exchanged, files
// of bytecode with bytes exchanged or cut, compile options likewise. Each is
// refused with a sentence or compiled, within 10 s of a processor, and what is
// compiled is run. This process lives on, whatever ends the compiler; how often
// something did is printed. Usage: pjrt_fuzz PLUGIN COUNT SEED PROGRAM...
#include "tests/pjrt/Client.h"

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <regex>
#include <sys/resource.h>

using namespace mgpu::test;

namespace {

class Mutator {
public:
  explicit Mutator(uint64_t seed) : random(seed) {}

  size_t below(size_t count) {
    return std::uniform_int_distribution<size_t>(0, count - 1)(random);
  }
  std::string bytes(std::string data) {
    if (below(10) == 0)
      return data.substr(0, below(data.size() + 1));
    for (size_t times = below(4) + 1; times > 0 && !data.empty(); --times) {
      char &byte = data[below(data.size())];
      const char choices[] = {0,
                              1,
                              127,
                              char(128),
                              char(255),
                              char(byte ^ (1 << below(8))),
                              char(below(256))};
      byte = choices[below(std::size(choices))];
    }
    return data;
  }
  std::string text(const std::string &program) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < program.size();) {
      const size_t end = std::min(program.find('\n', at), program.size());
      lines.push_back(program.substr(at, end - at));
      at = end + 1;
    }
    for (size_t times = below(3) / 2 + 1; times > 0 && !lines.empty(); --times)
      change(lines);
    std::string out;
    for (const std::string &line : lines)
      out += line + "\n";
    return out;
  }

private:
  void change(std::vector<std::string> &lines) {
    const size_t at = below(lines.size()), other = below(lines.size());
    switch (below(5)) {
    case 0:
      lines.erase(lines.begin() + long(at));
      break;
    case 1:
      lines.insert(lines.begin() + long(other), std::string(lines[at]));
      break;
    case 2:
      std::swap(lines[at], lines[other]);
      break;
    case 3:
      exchange(
          lines[at], R"(\d+)",
          {"0", "1", "-1", "3", "100", "4294967297", "9223372036854775807"});
      break;
    default:
      exchange(lines[at], R"([a-z]\w+)",
               {"f32", "i1", "f64", "ui8", "i64", "index", "add", "divide", "x",
                "stablehlo", "complex<f32>", "?"});
    }
  }
  void exchange(std::string &line, const char *what,
                const std::vector<std::string> &with) {
    const std::regex pattern(what);
    std::vector<std::pair<size_t, size_t>> found;
    for (std::sregex_iterator at(line.begin(), line.end(), pattern), end;
         at != end; ++at)
      found.emplace_back(at->position(), at->length());
    if (found.empty())
      return;
    const auto [at, size] = found[below(found.size())];
    line.replace(at, size, with[below(with.size())]);
  }

  std::mt19937_64 random;
};

/// Buffers of zeros for the arguments of @main as the text has them; false
/// where it says them in another way.
bool makeArguments(Client &client, const std::string &text,
                   std::vector<PJRT_Buffer *> &out) {
  static const std::map<std::string, PJRT_Buffer_Type> types = {
      {"f32", PJRT_Buffer_Type_F32}, {"i32", PJRT_Buffer_Type_S32},
      {"i1", PJRT_Buffer_Type_PRED}, {"f64", PJRT_Buffer_Type_F64},
      {"i64", PJRT_Buffer_Type_S64}, {"ui8", PJRT_Buffer_Type_U8}};
  const size_t begin = text.find("@main("), end = text.find("->", begin);
  if (begin == text.npos || end == text.npos)
    return false;
  const std::string list = text.substr(begin, end - begin);
  static const std::regex tensor(R"(tensor<((?:\d+x)*)(\w+)>)");
  for (std::sregex_iterator at(list.begin(), list.end(), tensor), last;
       at != last; ++at) {
    std::vector<int64_t> dims;
    size_t bytes = 8;
    const std::string sizes = (*at)[1];
    for (size_t from = 0; from < sizes.size();
         from = sizes.find('x', from) + 1) {
      dims.push_back(std::strtoll(sizes.c_str() + from, nullptr, 10));
      if (dims.back() < 0 || dims.back() > 1 << 20 ||
          (bytes *= size_t(dims.back())) > 1 << 24)
        return false;
    }
    auto type = types.find((*at)[2]);
    if (type == types.end())
      return false;
    const std::string zeros(bytes + 8, 0);
    out.push_back(client.buffer(zeros.data(), type->second, dims));
    if (!out.back())
      return false;
  }
  return true;
}

/// The processor's seconds of processes that this one waited for, and theirs.
double childSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

size_t numOutputs(const Client &client, PJRT_LoadedExecutable *executable) {
  auto get = arguments<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  client.said(client.api.PJRT_LoadedExecutable_GetExecutable(&get));
  auto count = arguments<PJRT_Executable_NumOutputs_Args>();
  count.executable = get.executable;
  client.said(client.api.PJRT_Executable_NumOutputs(&count));
  auto end = arguments<PJRT_Executable_Destroy_Args>();
  end.executable = get.executable;
  client.said(client.api.PJRT_Executable_Destroy(&end));
  return count.num_outputs;
}

/// What became of a program.
std::string endOf(const PJRT_Api &api, const std::string &program,
                  const std::string &options) {
  Client client(
      api, {{"target", "host:2"}, {"cache", "off"}, {"compile_seconds", "60"}});
  PJRT_LoadedExecutable *executable = nullptr;
  const std::string said = client.compile(program, executable, options);
  if (!said.empty()) {
    if (said.find("ended by signal") != said.npos)
      return "the compiler died";
    if (said.find("MLIR's reader") != said.npos)
      return "the reader of bytecode died";
    return said.size() < 5 ? "no sentence" : "refused";
  }
  std::string end = "compiled";
  std::vector<PJRT_Buffer *> given, results;
  if (options == Client::counts(1, 1) && makeArguments(client, program, given))
    end = client.execute(executable, {given}, numOutputs(client, executable),
                         results)
                  .empty()
              ? "run"
              : "refused to run";
  client.destroy(executable);
  return end;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 5)
    return std::fprintf(stderr,
                        "usage: pjrt_fuzz PLUGIN COUNT SEED PROGRAM...\n"),
           2;
  const PJRT_Api &api = plugin(argv[1]);
  const long count = std::atol(argv[2]) * (std::getenv("MGPU_SWEEPS") ? 40 : 1);
  Mutator mutator(std::strtoull(argv[3], nullptr, 10));
  std::map<std::string, int> ends;
  bool isWrong = false;
  for (long k = 0; k < count; ++k) {
    std::ifstream file(argv[4 + mutator.below(size_t(argc) - 4)],
                       std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    const std::string program = whole.starts_with("ML\xefR")
                                    ? mutator.bytes(whole)
                                    : mutator.text(whole);
    std::string options = Client::counts(1 + int(mutator.below(8) == 0), 1);
    if (mutator.below(10) == 0)
      options = mutator.bytes(options);
    const double start = childSeconds();
    const std::string end = endOf(api, program, options);
    const double seconds = childSeconds() - start;
    ++ends[end];
    if (seconds > 10 || end == "no sentence" || end == "the compiler died") {
      isWrong |= end != "the compiler died";
      std::printf("mutant %ld: %s after %.1f s\n", k, end.c_str(), seconds);
      std::ofstream("mutant." + std::to_string(k) + ".mlir", std::ios::binary)
          << program;
    }
  }
  isWrong |= ends["compiled"] + ends["run"] == 0; // no compiler was met
  std::printf("%ld mutants:", count);
  for (const auto &[end, times] : ends)
    std::printf(" %s %d,", end.c_str(), times);
  std::printf("\n");
  return isWrong ? 1 : 0;
}
