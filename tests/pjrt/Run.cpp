// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles and runs a program through a plugin. FOLDER/arguments has a line for
// each argument of each device, `DEVICE TYPE RANK SIZES... FILE`, whose bytes
// are those of the argument; result K of device D becomes FOLDER/out.D.K.
// Usage: pjrt_run PLUGIN PROGRAM PARTITIONS FOLDER [TARGET]
#include "tests/pjrt/Client.h"

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

using namespace mgpu::test;

static std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static size_t numOutputs(const Client &client,
                         PJRT_LoadedExecutable *executable) {
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

static std::vector<std::vector<PJRT_Buffer *>>
readArguments(Client &client, const std::string &folder, size_t devices) {
  std::vector<std::vector<PJRT_Buffer *>> given(devices);
  std::ifstream list(folder + "/arguments");
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    size_t device = 0, rank = 0;
    int type = 0;
    words >> device >> type >> rank;
    std::vector<int64_t> dims(rank);
    for (int64_t &dim : dims)
      words >> dim;
    std::string file;
    words >> file;
    const std::string bytes = readAll(file);
    given.at(device).push_back(
        client.buffer(bytes.data(), PJRT_Buffer_Type(type), dims, device));
  }
  return given;
}

int main(int argc, char **argv) {
  if (argc != 5 && argc != 6)
    return std::cerr << "usage: pjrt_run PLUGIN PROGRAM PARTITIONS FOLDER "
                        "[TARGET]\n",
           2;
  const std::string folder = argv[4];
  const int devices = std::atoi(argv[3]);
  Client client(plugin(argv[1]),
                {{"target", argc == 6 ? std::string(argv[5])
                                      : "host:" + std::to_string(devices)}});
  PJRT_LoadedExecutable *executable = nullptr;
  std::string said = client.error;
  if (said.empty())
    said = client.compile(readAll(argv[2]), executable,
                          Client::counts(1, devices));
  if (!said.empty())
    return std::cerr << said << '\n', 1;
  const size_t count = numOutputs(client, executable);
  std::vector<PJRT_Buffer *> results;
  said =
      client.execute(executable, readArguments(client, folder, size_t(devices)),
                     count, results);
  if (!said.empty())
    return std::cerr << said << '\n', 1;
  for (size_t k = 0; k < results.size(); ++k) {
    auto size = arguments<PJRT_Buffer_OnDeviceSizeInBytes_Args>();
    size.buffer = results[k];
    client.said(client.api.PJRT_Buffer_OnDeviceSizeInBytes(&size));
    std::string bytes(size.on_device_size_in_bytes, 0);
    said += client.read(results[k], bytes.data(), bytes.size());
    std::ofstream(folder + "/out." + std::to_string(k / count) + "." +
                      std::to_string(k % count),
                  std::ios::binary)
        << bytes;
  }
  client.destroy(executable);
  return std::cerr << said, said.empty() ? 0 : 1;
}
