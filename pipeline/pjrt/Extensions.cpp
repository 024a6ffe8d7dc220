// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/pjrt/Extensions.h"

#include "pipeline/pjrt/Buffer.h"
#include "pipeline/pjrt/Errors.h"
#include "pipeline/pjrt/Executable.h"

#include <fmt/format.h>

namespace mgpu::pipeline::pjrt {

std::vector<Layout> layoutsOf(const std::vector<Shape> &shapes) {
  std::vector<Layout> layouts;
  for (const Shape &shape : shapes) {
    std::string text;
    for (size_t dim = shape.dims.size(); dim-- > 0;)
      text += fmt::format("{}{}", text.empty() ? "" : ",", dim);
    layouts.push_back({"{" + text + "}"});
  }
  return layouts;
}

static Layout *newLayout(const Shape &shape) {
  return new Layout(layoutsOf({shape}).front());
}

#define MGPU_PJRT_LAYOUT(name)                                                 \
  static PJRT_Error *Layouts_##name(PJRT_Layouts_##name##_Args &args)

MGPU_PJRT_LAYOUT(MemoryLayout_Destroy) {
  delete args.layout;
  return nullptr;
}

MGPU_PJRT_LAYOUT(MemoryLayout_Serialize) {
  MGPU_PJRT_NEEDS(layout);
  args.serialized_bytes = args.layout->text.data();
  args.serialized_bytes_size = args.layout->text.size();
  args.serialized_layout = nullptr;
  args.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout *) {};
  return nullptr;
}

MGPU_PJRT_LAYOUT(PJRT_Client_GetDefaultLayout) {
  MGPU_PJRT_NEEDS(client);
  auto shape = Shape::of(args.type, args.dims, args.num_dims);
  MGPU_PJRT_TRY(shape);
  args.layout = newLayout(*shape);
  return nullptr;
}

MGPU_PJRT_LAYOUT(PJRT_Buffer_MemoryLayout) {
  MGPU_PJRT_NEEDS(buffer);
  args.layout = newLayout(args.buffer->shape);
  return nullptr;
}

MGPU_PJRT_LAYOUT(PJRT_Topology_GetDefaultLayout) {
  MGPU_PJRT_NEEDS(topology_description);
  auto shape = Shape::of(args.type, args.dims, args.num_dims);
  MGPU_PJRT_TRY(shape);
  args.layout = newLayout(*shape);
  return nullptr;
}

MGPU_PJRT_LAYOUT(PJRT_Executable_GetOutputLayouts) {
  MGPU_PJRT_NEEDS(executable);
  args.layouts = args.executable->of->outputLayoutPointers.data();
  args.num_outputs = args.executable->of->signature.results.size();
  return nullptr;
}

MGPU_PJRT_LAYOUT(PJRT_Executable_GetParameterLayouts) {
  MGPU_PJRT_NEEDS(executable);
  args.layouts = args.executable->of->inputLayoutPointers.data();
  args.num_parameters = args.executable->of->signature.arguments.size();
  return nullptr;
}

PJRT_Extension_Base *extensions() {
#define ENTER(name) enter<PJRT_Layouts_##name##_Args, Layouts_##name>
  static PJRT_Layouts_Extension layouts = {
      {sizeof(PJRT_Layouts_Extension), PJRT_Extension_Type_Layouts, nullptr},
      ENTER(MemoryLayout_Destroy),
      ENTER(MemoryLayout_Serialize),
      ENTER(PJRT_Client_GetDefaultLayout),
      ENTER(PJRT_Buffer_MemoryLayout),
      ENTER(PJRT_Topology_GetDefaultLayout),
      ENTER(PJRT_Executable_GetOutputLayouts),
      ENTER(PJRT_Executable_GetParameterLayouts)};
#undef ENTER
  return &layouts.base;
}

} // namespace mgpu::pipeline::pjrt
