// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The cost of a call through PJRT over mgt_replay of the same bundle: so many
// floats in and out, medians of calls that take turns in one process. A call is
// an execution and the end of its result. Usage: pjrt_costs PLUGIN COUNT FLOATS
#include "pipeline/c/mgt.h"
#include "tests/pjrt/Client.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace mgpu::test;

static std::string serialized(const Client &client,
                              PJRT_LoadedExecutable *executable) {
  auto get = arguments<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  client.said(client.api.PJRT_LoadedExecutable_GetExecutable(&get));
  auto bytes = arguments<PJRT_Executable_Serialize_Args>();
  bytes.executable = get.executable;
  client.said(client.api.PJRT_Executable_Serialize(&bytes));
  std::string out(bytes.serialized_bytes, bytes.serialized_bytes_size);
  bytes.serialized_executable_deleter(bytes.serialized_executable);
  auto end = arguments<PJRT_Executable_Destroy_Args>();
  end.executable = get.executable;
  client.said(client.api.PJRT_Executable_Destroy(&end));
  return out;
}

static mgt_program *openAgain(const std::string &bundle, size_t floats) {
  const std::string path = std::filesystem::temp_directory_path() /
                           ("pjrt-costs-" + std::to_string(::getpid()));
  std::ofstream(path, std::ios::binary) << bundle;
  mgt_program *program = nullptr;
  const mgt_status status = mgt_open(path.c_str(), "host", &program);
  std::filesystem::remove(path);
  const std::vector<float> zeros(floats);
  if (status != MGT_OK ||
      mgt_write(program, "x", zeros.data(), floats * sizeof(float)) != MGT_OK ||
      mgt_load(program) != MGT_OK) {
    std::fprintf(stderr, "%s\n", mgt_error());
    std::exit(1);
  }
  return program;
}

template <typename Call>
static double microseconds(Call call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - start)
      .count();
}

static double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + long(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

int main(int argc, char **argv) {
  if (argc != 4)
    return std::fprintf(stderr, "usage: pjrt_costs PLUGIN COUNT FLOATS\n"), 2;
  Client client(plugin(argv[1]), {{"target", "host"}});
  PJRT_LoadedExecutable *executable = nullptr;
  const size_t floats = std::strtoull(argv[3], nullptr, 10);
  const std::string type = "tensor<" + std::to_string(floats) + "xf32>";
  const std::string said =
      client.compile("func.func @main(%x: " + type + ") -> " + type +
                         " {\n%0 = stablehlo.negate %x : " + type +
                         "\nreturn %0 : " + type + " }",
                     executable);
  if (!said.empty())
    return std::fprintf(stderr, "%s\n", said.c_str()), 1;
  mgt_program *program = openAgain(serialized(client, executable), floats);
  PJRT_Buffer *const given[] = {client.floats(Client::Floats(floats, 1))};
  PJRT_Buffer *made[1] = {};
  PJRT_Buffer *const *const lists[] = {given};
  PJRT_Buffer **const outputs[] = {made};
  auto options = arguments<PJRT_ExecuteOptions>();
  auto run = arguments<PJRT_LoadedExecutable_Execute_Args>();
  run.executable = executable;
  run.options = &options;
  run.argument_lists = lists;
  run.num_devices = run.num_args = 1;
  run.output_lists = outputs;
  std::vector<double> through, bare;
  const PJRT_Api &api = client.api;
  bool isWell = true;
  for (long k = std::atol(argv[2]); k > 0; --k) {
    bare.push_back(
        microseconds([&] { isWell &= mgt_replay(program) == MGT_OK; }));
    through.push_back(microseconds([&] {
      isWell &= !api.PJRT_LoadedExecutable_Execute(&run);
      client.destroy(made[0]);
    }));
  }
  if (!isWell)
    return std::fprintf(stderr, "a call failed\n"), 1;
  std::printf("mgt_replay %.2f us, through PJRT %.2f us: %.2f us more\n",
              median(bare), median(through), median(through) - median(bare));
  mgt_close(program);
  client.destroy(executable);
  return 0;
}
