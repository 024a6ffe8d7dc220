// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/mgpu-tune/Arguments.h"

#include "support/ArgumentValue.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::tune {

static const char *madeUp(ElementType type) {
  switch (type) {
  case ElementType::I1:
  case ElementType::I8:
  case ElementType::I16:
  case ElementType::I32:
  case ElementType::I64:
  case ElementType::Index:
    return "zeros";
  default:
    return "random:1";
  }
}

Result<std::vector<ArgumentArray>>
loadArguments(const Program &program, const Options &options, bool makeUp) {
  std::vector<ArgumentArray> values;
  auto load = [&](const Binding &binding, const std::string &key,
                  const std::string &spec) -> Result<void> {
    auto array = loadArgument(spec, binding.elementType, binding.shape);
    if (!array)
      return failIn(fmt::format("--arg {}: ", key), array.error());
    values.push_back({&binding, std::move(*array)});
    return {};
  };
  for (const auto &[key, spec] : options.arguments) {
    MGPU_TRY_ASSIGN(const Binding *binding,
                    findBinding(program, key, "--arg", false));
    if (binding->buffer) // else a scalar, used when the program was specialised
      MGPU_TRY(load(*binding, key, spec));
  }
  for (const Binding &binding : program.bindings) {
    if (!binding.needsValue ||
        std::any_of(values.begin(), values.end(), [&](const ArgumentArray &a) {
          return a.binding == &binding;
        }))
      continue;
    if (!makeUp)
      return fail(ErrorKind::Usage,
                  fmt::format("argument '{0}' is read but has no value; give "
                              "--arg {0}=VALUE",
                              binding.name));
    MGPU_TRY(load(binding, binding.name, madeUp(binding.elementType)));
  }
  return values;
}

} // namespace mgpu::tune
