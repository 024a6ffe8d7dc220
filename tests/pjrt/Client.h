// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_PJRT_CLIENT_H
#define MGPU_TESTS_PJRT_CLIENT_H

// A client of a plugin of PJRT, with as little in it as tests need. Each call
// says "" or "CODE: message".

#include "pipeline/pjrt/Abi.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace mgpu::test {

inline const PJRT_Api &plugin(const std::string &path) {
  void *library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto *get = library ? reinterpret_cast<const PJRT_Api *(*)()>(
                            ::dlsym(library, "GetPjrtApi"))
                      : nullptr;
  if (!get) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::abort();
  }
  return *get();
}

template <typename Args>
Args arguments() {
  Args args{};
  args.struct_size = sizeof args;
  return args;
}

class Client {
public:
  using Floats = std::vector<float>;

  /// Options are texts by name. Where there is none, `error` says why.
  Client(const PJRT_Api &api,
         const std::vector<std::pair<std::string, std::string>> &options)
      : api(api) {
    std::vector<PJRT_NamedValue> values;
    for (const auto &[name, text] : options) {
      auto value = arguments<PJRT_NamedValue>();
      value.name = name.data();
      value.name_size = name.size();
      value.string_value = text.data();
      value.value_size = text.size();
      values.push_back(value);
    }
    auto args = arguments<PJRT_Client_Create_Args>();
    args.create_options = values.data();
    args.num_options = values.size();
    error = said(api.PJRT_Client_Create(&args));
    client = args.client;
    auto devices = arguments<PJRT_Client_Devices_Args>();
    devices.client = client;
    if (client && said(api.PJRT_Client_Devices(&devices)).empty())
      this->devices.assign(devices.devices,
                           devices.devices + devices.num_devices);
  }
  ~Client() {
    for (PJRT_Buffer *buffer : buffers)
      destroy(buffer);
    auto args = arguments<PJRT_Client_Destroy_Args>();
    args.client = client;
    said(api.PJRT_Client_Destroy(&args));
  }
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  std::string said(PJRT_Error *error) const {
    if (!error)
      return "";
    auto code = arguments<PJRT_Error_GetCode_Args>();
    auto message = arguments<PJRT_Error_Message_Args>();
    auto end = arguments<PJRT_Error_Destroy_Args>();
    code.error = message.error = end.error = error;
    api.PJRT_Error_GetCode(&code);
    api.PJRT_Error_Message(&message);
    std::string text = std::to_string(int(code.code)) + ": " +
                       std::string(message.message, message.message_size);
    api.PJRT_Error_Destroy(&end);
    return text;
  }
  /// Waits for an event, and ends it.
  std::string await(PJRT_Event *event) const {
    auto wait = arguments<PJRT_Event_Await_Args>();
    wait.event = event;
    const std::string text = said(api.PJRT_Event_Await(&wait));
    auto end = arguments<PJRT_Event_Destroy_Args>();
    end.event = event;
    said(api.PJRT_Event_Destroy(&end));
    return text;
  }

  /// Compile options as XLA's clients serialise them.
  static std::string counts(int replicas, int partitions) {
    return {'\x1a', 4, '\x20', char(replicas), '\x28', char(partitions)};
  }
  std::string compile(const std::string &text, PJRT_LoadedExecutable *&out,
                      const std::string &options = counts(1, 1)) const {
    auto program = arguments<PJRT_Program>();
    std::string copy = text;
    program.code = copy.data();
    program.code_size = copy.size();
    program.format = "mlir";
    program.format_size = 4;
    auto args = arguments<PJRT_Client_Compile_Args>();
    args.client = client;
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    const std::string text_ = said(api.PJRT_Client_Compile(&args));
    out = args.executable;
    return text_;
  }

  /// A buffer of so many bytes, which the client ends.
  PJRT_Buffer *buffer(const void *data, PJRT_Buffer_Type type,
                      const std::vector<int64_t> &dims, size_t device = 0) {
    auto args = arguments<PJRT_Client_BufferFromHostBuffer_Args>();
    args.client = client;
    args.data = data;
    args.type = type;
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.device = devices.at(device);
    error = said(api.PJRT_Client_BufferFromHostBuffer(&args));
    if (!args.buffer)
      return nullptr;
    await(args.done_with_host_buffer);
    buffers.push_back(args.buffer);
    return args.buffer;
  }
  PJRT_Buffer *floats(const Floats &values, size_t device = 0) {
    return buffer(values.data(), PJRT_Buffer_Type_F32, {int64_t(values.size())},
                  device);
  }
  std::string read(PJRT_Buffer *buffer, void *data, size_t bytes) const {
    auto args = arguments<PJRT_Buffer_ToHostBuffer_Args>();
    args.src = buffer;
    args.dst = data;
    args.dst_size = bytes;
    const std::string text = said(api.PJRT_Buffer_ToHostBuffer(&args));
    return args.event ? await(args.event) : text;
  }
  Floats read(PJRT_Buffer *buffer) {
    auto size = arguments<PJRT_Buffer_OnDeviceSizeInBytes_Args>();
    size.buffer = buffer;
    said(api.PJRT_Buffer_OnDeviceSizeInBytes(&size));
    Floats values(size.on_device_size_in_bytes / sizeof(float));
    error = read(buffer, values.data(), values.size() * sizeof(float));
    return values;
  }
  void destroy(PJRT_Buffer *buffer) const {
    auto args = arguments<PJRT_Buffer_Destroy_Args>();
    args.buffer = buffer;
    said(api.PJRT_Buffer_Destroy(&args));
  }

  /// Runs with each device's buffers; `results` are one device behind the
  /// other, and the client ends them.
  std::string execute(PJRT_LoadedExecutable *executable,
                      const std::vector<std::vector<PJRT_Buffer *>> &given,
                      size_t numResults, std::vector<PJRT_Buffer *> &results,
                      std::vector<int64_t> kept = {}) {
    std::vector<PJRT_Buffer *const *> lists;
    for (const auto &list : given)
      lists.push_back(list.data());
    results.assign(numResults * given.size(), nullptr);
    std::vector<PJRT_Buffer **> outputs;
    for (size_t k = 0; k < given.size(); ++k)
      outputs.push_back(results.data() + k * numResults);
    auto options = arguments<PJRT_ExecuteOptions>();
    options.non_donatable_input_indices = kept.data();
    options.num_non_donatable_input_indices = kept.size();
    std::vector<PJRT_Event *> events(given.size());
    auto args = arguments<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = executable;
    args.options = &options;
    args.argument_lists = lists.data();
    args.num_devices = given.size();
    args.num_args = given.empty() ? 0 : given[0].size();
    args.output_lists = outputs.data();
    args.device_complete_events = events.data();
    std::string text = said(api.PJRT_LoadedExecutable_Execute(&args));
    for (PJRT_Event *event : events)
      if (event)
        text += await(event);
    for (PJRT_Buffer *buffer : results)
      if (buffer)
        buffers.push_back(buffer);
    return text;
  }
  void destroy(PJRT_LoadedExecutable *executable) const {
    auto args = arguments<PJRT_LoadedExecutable_Destroy_Args>();
    args.executable = executable;
    said(api.PJRT_LoadedExecutable_Destroy(&args));
  }

  const PJRT_Api &api;
  PJRT_Client *client = nullptr;
  std::vector<PJRT_Device *> devices;
  std::string error; ///< of what has another result

private:
  std::vector<PJRT_Buffer *> buffers;
};

} // namespace mgpu::test

#endif // MGPU_TESTS_PJRT_CLIENT_H
