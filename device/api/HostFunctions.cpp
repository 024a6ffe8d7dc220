// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/HostFunctions.h"

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <mutex>

namespace mgpu::device {

namespace {

struct Registry {
  std::mutex lock;
  std::map<std::string, HostFunction> functions;
};

Registry &registry() {
  static Registry all;
  return all;
}

} // namespace

void registerFunction(const std::string &name, HostFunction function) {
  const std::lock_guard guard(registry().lock);
  if (function.call)
    registry().functions[name] = function;
  else
    registry().functions.erase(name);
}

Result<HostFunction> registeredFunction(const std::string &name) {
  const std::lock_guard guard(registry().lock);
  auto at = registry().functions.find(name);
  if (at != registry().functions.end())
    return at->second;
  return fail(ErrorKind::Unsupported,
              fmt::format("no function is registered as '{0}', which the "
                          "program calls: mgt_register() or mgpu.register() "
                          "does it, or --custom '{0}=LIB.so:FUNCTION'",
                          name));
}

Result<void> registerFromLibrary(const std::string &name,
                                 const std::string &file,
                                 const std::string &symbol) {
  void *library =
      dlopen(std::filesystem::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return fail(ErrorKind::Usage,
                fmt::format("--custom {}={}: the library does not open: {}",
                            name, file, why ? why : "no reason is known"));
  }
  HostFunction function;
  function.call =
      reinterpret_cast<decltype(function.call)>(dlsym(library, symbol.c_str()));
  if (!function.call)
    return fail(ErrorKind::Usage,
                fmt::format("--custom {}={}: the library has no function '{}'",
                            name, file, symbol));
  registerFunction(name, function);
  return {};
}

Result<BoundCall> BoundCall::bind(HostFunction function, HostCall call,
                                  const std::vector<uint64_t> &addresses) {
  if (addresses.size() != call.operands.size() + call.results.size())
    return fail(ErrorKind::Invalid,
                fmt::format("the call of '{}' has {} tensors, and the launch "
                            "gives {}",
                            call.name,
                            call.operands.size() + call.results.size(),
                            addresses.size()));
  BoundCall bound;
  bound.function = function;
  bound.what = std::make_shared<const HostCall>(std::move(call));
  for (const auto *list : {&bound.what->operands, &bound.what->results})
    for (const HostCall::Tensor &tensor : *list)
      bound.tensors.push_back(
          {toString(tensor.type).data(), tensor.shape.size(),
           tensor.shape.data(),
           reinterpret_cast<void *>(addresses[bound.tensors.size()]),
           tensor.bytes()});
  return bound;
}

Result<void> BoundCall::run() const {
  std::array<char, 256> message{};
  FunctionCall call{};
  call.size = sizeof call;
  call.name = what->name.c_str();
  call.config = what->config.c_str();
  call.configBytes = what->config.size();
  call.numOperands = what->operands.size();
  call.numResults = what->results.size();
  call.operands = tensors.data();
  call.results = tensors.data() + what->operands.size();
  call.message = message.data();
  call.messageBytes = message.size();
  const int code = function.call(function.user, &call);
  if (code == 0)
    return {};
  message.back() = 0;
  return fail(ErrorKind::Invalid,
              fmt::format("the function registered as '{}' failed: {}",
                          what->name,
                          message[0] ? std::string(message.data())
                                     : fmt::format("it returned {}", code)));
}

} // namespace mgpu::device
