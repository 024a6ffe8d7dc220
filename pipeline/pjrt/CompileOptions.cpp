// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/CompileOptions.h"

#include <fmt/format.h>
#include <optional>

namespace mgpu::pipeline::pjrt {

namespace {

constexpr uint32_t mostDevices = 1024;

/// A field of a message: a number, or bytes.
struct Field {
  uint64_t number = 0;
  uint64_t value = 0;
  std::string_view bytes;
  bool hasBytes = false;
};

/// Reads the fields of a message one by one.
class Message {
public:
  explicit Message(std::string_view bytes) : rest(bytes) {}

  /// Calls `take(field)`, a Result<void>, for each field.
  template <typename Take>
  Result<void> each(Take take) {
    while (!rest.empty()) {
      const std::optional<Field> field = next();
      if (!field)
        return fail(ErrorKind::Invalid,
                    "the compile options are no CompileOptionsProto: a field "
                    "is cut off, or of no known kind");
      MGPU_TRY(take(*field));
    }
    return {};
  }

  std::optional<uint64_t> varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      const auto byte = uint8_t(rest.front());
      rest.remove_prefix(1);
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    return std::nullopt;
  }
  bool isAtEnd() const { return rest.empty(); }

private:
  bool skip(size_t bytes) {
    if (rest.size() < bytes)
      return false;
    rest.remove_prefix(bytes);
    return true;
  }

  std::optional<Field> next() {
    const auto key = varint();
    if (!key)
      return std::nullopt;
    Field field{*key >> 3, 0, {}, false};
    switch (*key & 7) {
    case 0: {
      const auto value = varint();
      field.value = value.value_or(0);
      return value ? std::optional(field) : std::nullopt;
    }
    case 1:
      return skip(8) ? std::optional(field) : std::nullopt;
    case 2: {
      const auto size = varint();
      if (!size || *size > rest.size())
        return std::nullopt;
      field.bytes = rest.substr(0, size_t(*size));
      field.hasBytes = true;
      rest.remove_prefix(size_t(*size));
      return field;
    }
    case 5:
      return skip(4) ? std::optional(field) : std::nullopt;
    default:
      return std::nullopt;
    }
  }

  std::string_view rest;
};

/// The devices of one partition, replica by replica.
Result<std::vector<int64_t>> readReplicas(std::string_view bytes) {
  std::vector<int64_t> ids;
  MGPU_TRY(Message(bytes).each([&](const Field &field) -> Result<void> {
    if (field.number != 1)
      return {};
    if (!field.hasBytes) {
      ids.push_back(int64_t(field.value));
      return {};
    }
    Message packed(field.bytes);
    while (!packed.isAtEnd()) {
      const auto id = packed.varint();
      if (!id || ids.size() >= mostDevices)
        return fail(ErrorKind::Invalid, "the device assignment is damaged");
      ids.push_back(int64_t(*id));
    }
    return {};
  }));
  return ids;
}

/// The devices of an assignment, of each replica those of its partitions.
Result<std::vector<int64_t>> readAssignment(std::string_view bytes,
                                            const CompileOptions &options) {
  std::vector<std::vector<int64_t>> partitions;
  MGPU_TRY(Message(bytes).each([&](const Field &field) -> Result<void> {
    if (field.number != 3 || !field.hasBytes)
      return {};
    if (partitions.size() >= mostDevices)
      return fail(ErrorKind::Invalid, "the device assignment is too long");
    MGPU_TRY_ASSIGN(auto ids, readReplicas(field.bytes));
    partitions.push_back(std::move(ids));
    return {};
  }));
  if (partitions.empty())
    return std::vector<int64_t>();
  bool fits = partitions.size() == options.partitions;
  for (const auto &ids : partitions)
    fits &= ids.size() == options.replicas;
  if (!fits)
    return fail(ErrorKind::Invalid,
                fmt::format("the device assignment is not of {} replicas and "
                            "{} partitions",
                            options.replicas, options.partitions));
  std::vector<int64_t> devices;
  for (uint32_t replica = 0; replica < options.replicas; ++replica)
    for (const auto &ids : partitions)
      devices.push_back(ids[replica]);
  return devices;
}

Result<uint32_t> countOf(const Field &field, const char *what) {
  const uint64_t count = std::max<uint64_t>(field.value, 1); // 0 is not set
  if (count > mostDevices)
    return fail(ErrorKind::Invalid,
                fmt::format("{} {}: there are {} at most", int64_t(field.value),
                            what, mostDevices));
  return uint32_t(count);
}

Result<void> readBuildOptions(std::string_view bytes, CompileOptions &options) {
  std::string_view assignment;
  MGPU_TRY(Message(bytes).each([&](const Field &field) -> Result<void> {
    if (field.number == 4) {
      MGPU_TRY_ASSIGN(options.replicas, countOf(field, "replicas"));
    } else if (field.number == 5) {
      MGPU_TRY_ASSIGN(options.partitions, countOf(field, "partitions"));
    } else if (field.number == 9 && field.hasBytes) {
      assignment = field.bytes;
    }
    return {};
  }));
  if (uint64_t(options.replicas) * options.partitions > mostDevices)
    return fail(ErrorKind::Invalid,
                fmt::format("{} replicas of {} partitions: there are {} "
                            "devices at most",
                            options.replicas, options.partitions, mostDevices));
  MGPU_TRY_ASSIGN(options.devices, readAssignment(assignment, options));
  return {};
}

void addVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(char(value | 0x80));
  out.push_back(char(value));
}

void addNumber(std::string &out, uint32_t field, uint64_t value) {
  addVarint(out, field << 3);
  addVarint(out, value);
}

void addBytes(std::string &out, uint32_t field, const std::string &bytes) {
  addVarint(out, (field << 3) | 2);
  addVarint(out, bytes.size());
  out += bytes;
}

} // namespace

Result<CompileOptions> CompileOptions::parse(std::string_view bytes) {
  CompileOptions options;
  MGPU_TRY(Message(bytes).each([&](const Field &field) -> Result<void> {
    if (field.number == 2 && field.value != 0)
      return fail(ErrorKind::Unsupported,
                  "parameter_is_tupled_arguments: each argument is a buffer of "
                  "its own in this version");
    if (field.number == 4)
      options.isPortable = field.value != 0;
    if (field.number == 3 && field.hasBytes)
      return readBuildOptions(field.bytes, options);
    return {};
  }));
  return options;
}

std::vector<int64_t> CompileOptions::devicesUsed() const {
  std::vector<int64_t> all = devices;
  for (uint32_t k = 0; devices.empty() && k < replicas * partitions; ++k)
    all.push_back(k);
  return all;
}

std::string CompileOptions::assignment(uint32_t replicas, uint32_t partitions,
                                       const std::vector<int64_t> &devices) {
  std::string out;
  addNumber(out, 1, replicas);
  addNumber(out, 2, partitions);
  for (uint32_t partition = 0; partition < partitions; ++partition) {
    std::string packed, computation;
    for (uint32_t replica = 0; replica < replicas; ++replica)
      addVarint(packed,
                uint64_t(devices[size_t(replica) * partitions + partition]));
    addBytes(computation, 1, packed);
    addBytes(out, 3, computation);
  }
  return out;
}

std::string CompileOptions::serialized() const {
  std::string build, out;
  addNumber(build, 4, replicas);
  addNumber(build, 5, partitions);
  if (!devices.empty())
    addBytes(build, 9, assignment(replicas, partitions, devices));
  addBytes(out, 3, build);
  if (isPortable)
    addNumber(out, 4, 1);
  return out;
}

} // namespace mgpu::pipeline::pjrt
