// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Signature.h"

#include "support/Number.h"

#include <fmt/format.h>

namespace mgpu::pipeline::pjrt {

/// Takes the front of `text` up to `end`, and what ends it.
static std::string_view take(std::string_view &text, char end) {
  const size_t size = std::min(text.find(end), text.size());
  const std::string_view front = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return front;
}

static Result<Shape> shapeOf(std::string_view &line) {
  const std::string_view name = take(line, ' ');
  std::string_view sizes = take(line, ' ');
  const PJRT_Buffer_Type type = typeNamed(name);
  if (type == PJRT_Buffer_Type_INVALID)
    return fail(ErrorKind::Unsupported,
                fmt::format("the program takes or gives elements of {}, which "
                            "buffers do not have in this version",
                            name));
  std::vector<int64_t> dims;
  while (!sizes.empty() && sizes != "-") {
    const auto size = numberFrom<int64_t>(take(sizes, 'x'));
    if (!size)
      return fail(ErrorKind::Invalid, "the bundle's shapes are damaged");
    dims.push_back(*size);
  }
  return Shape::of(type, dims.data(), dims.size());
}

Result<Signature> Signature::parse(std::string_view lines) {
  Signature out;
  bool isFound = false;
  while (!lines.empty()) {
    std::string_view line = take(lines, '\n');
    const std::string_view key = take(line, ' ');
    if (key == "processes") {
      const auto replicas = numberFrom<uint32_t>(take(line, ' '));
      const auto partitions = numberFrom<uint32_t>(line);
      constexpr uint32_t most = 1024;
      isFound = replicas && partitions && *replicas > 0 && *partitions > 0 &&
                *replicas <= most && *partitions <= most / *replicas;
      out.replicas = replicas.value_or(1);
      out.partitions = partitions.value_or(1);
    } else if (key == "module") {
      out.name = line;
    } else if (key == "argument") {
      MGPU_TRY_ASSIGN(Shape shape, shapeOf(line));
      out.arguments.push_back(std::move(shape));
      out.donated.push_back(numberFrom<uint32_t>(line));
    } else if (key == "result") {
      MGPU_TRY_ASSIGN(Shape shape, shapeOf(line));
      out.results.push_back(std::move(shape));
    }
  }
  if (!isFound)
    return fail(ErrorKind::Invalid,
                "the bundle does not say what each device gives and takes: "
                "make it with --per-device 1,1");
  return out;
}

} // namespace mgpu::pipeline::pjrt
