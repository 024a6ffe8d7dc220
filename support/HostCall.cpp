// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/HostCall.h"

#include "support/JsonFields.h"
#include "support/Sha256.h"

#include <algorithm>

namespace mgpu {

static constexpr std::string_view callMagic("MGPUCALL1\n");

/// None where there is no such memory.
static std::optional<uint64_t> bytesOf(const HostCall::Tensor &tensor) {
  uint64_t bytes = sizeBytes(tensor.type);
  for (int64_t size : tensor.shape)
    if (size < 0 || __builtin_mul_overflow(bytes, uint64_t(size), &bytes) ||
        bytes > uint64_t(1) << 48)
      return std::nullopt;
  return bytes;
}

uint64_t HostCall::Tensor::bytes() const { return bytesOf(*this).value_or(0); }

static void fields(JsonFields &f, HostCall::Tensor &tensor) {
  f("type", tensor.type);
  f("shape", tensor.shape);
  f.require(bytesOf(tensor).has_value(), "shape");
}

void fields(JsonFields &f, HostCall &call) {
  std::string digits = toHex(std::as_bytes(std::span(call.config)));
  f("name", call.name);
  f("config", digits);
  f("library", call.library);
  f("operands", call.operands);
  f("results", call.results);
  if (!f.reads())
    return;
  const auto config = fromHex(digits);
  f.require(config.has_value(), "config");
  if (config)
    call.config.assign(reinterpret_cast<const char *>(config->data()),
                       config->size());
}

std::vector<std::byte> encodeCall(const HostCall &call) {
  HostCall copy = call;
  const std::string text = std::string(callMagic) + JsonFields::text(copy);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

static std::string_view textOf(std::span<const std::byte> object) {
  return {reinterpret_cast<const char *>(object.data()), object.size()};
}

bool isCall(std::span<const std::byte> object) {
  return textOf(object).starts_with(callMagic);
}

Result<HostCall> decodeCall(std::span<const std::byte> object) {
  if (!isCall(object))
    return fail(ErrorKind::Invalid, "the object is no call of a function");
  return JsonFields::read<HostCall>("its object",
                                    textOf(object).substr(callMagic.size()));
}

} // namespace mgpu
