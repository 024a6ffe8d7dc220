/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * A client of PJRT: compiles a program of StableHLO, runs it once and prints
 * the result. It works with any plugin. Usage: add PLUGIN.so
 *
 *   cc -I pipeline/pjrt examples/pjrt/add.c -ldl -o add
 *   ./add build/mgpu/lib/libmgpu_pjrt.so */
#include "Abi.h"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const PJRT_Api *api;

/* Whether a call went well; else it says what is wrong. */
static int well(PJRT_Error *error) {
  if (!error)
    return 1;
  PJRT_Error_Message_Args message = {.struct_size = sizeof message,
                                     .error = error};
  api->PJRT_Error_Message(&message);
  fprintf(stderr, "%.*s\n", (int)message.message_size, message.message);
  PJRT_Error_Destroy_Args end = {.struct_size = sizeof end, .error = error};
  api->PJRT_Error_Destroy(&end);
  return 0;
}

#define TRY(call)                                                              \
  if (!well(call))                                                             \
  return 1

static char program[] =
    "func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {\n"
    "  %0 = stablehlo.add %x, %y : tensor<4xf32>\n"
    "  return %0 : tensor<4xf32>\n"
    "}\n";

static int compile(PJRT_Client *client, PJRT_LoadedExecutable **executable) {
  /* build_options { num_replicas: 1 num_partitions: 1 } */
  static const char options[] = {0x1a, 4, 0x20, 1, 0x28, 1};
  PJRT_Program text = {.struct_size = sizeof text,
                       .code = program,
                       .code_size = strlen(program),
                       .format = "mlir",
                       .format_size = 4};
  PJRT_Client_Compile_Args args = {.struct_size = sizeof args,
                                   .client = client,
                                   .program = &text,
                                   .compile_options = options,
                                   .compile_options_size = sizeof options};
  TRY(api->PJRT_Client_Compile(&args));
  *executable = args.executable;
  return 0;
}

int main(int argc, char **argv) {
  void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  const PJRT_Api *(*get)(void) = NULL;
  if (library)
    *(void **)&get = dlsym(library, "GetPjrtApi");
  if (!get)
    return fprintf(stderr, "usage: add PLUGIN.so\n"), 2;
  api = get();
  if (api->pjrt_api_version.major_version != PJRT_API_MAJOR)
    return fprintf(stderr, "the plugin has version %d of PJRT\n",
                   api->pjrt_api_version.major_version),
           5;

  PJRT_Client_Create_Args create = {.struct_size = sizeof create};
  TRY(api->PJRT_Client_Create(&create));
  PJRT_Client_Devices_Args devices = {.struct_size = sizeof devices,
                                      .client = create.client};
  TRY(api->PJRT_Client_Devices(&devices));

  PJRT_LoadedExecutable *executable;
  if (compile(create.client, &executable))
    return 1;

  const float values[4] = {1, 2, 3, 4};
  const int64_t size = 4;
  PJRT_Client_BufferFromHostBuffer_Args put = {.struct_size = sizeof put,
                                               .client = create.client,
                                               .data = values,
                                               .type = PJRT_Buffer_Type_F32,
                                               .dims = &size,
                                               .num_dims = 1,
                                               .device = devices.devices[0]};
  TRY(api->PJRT_Client_BufferFromHostBuffer(&put));
  PJRT_Event_Destroy_Args end = {.struct_size = sizeof end,
                                 .event = put.done_with_host_buffer};
  TRY(api->PJRT_Event_Destroy(&end));

  PJRT_Buffer *given[] = {put.buffer, put.buffer}, *made[1];
  PJRT_Buffer *const *const lists[] = {given};
  PJRT_Buffer **const outputs[] = {made};
  PJRT_ExecuteOptions how = {.struct_size = sizeof how};
  PJRT_LoadedExecutable_Execute_Args run = {.struct_size = sizeof run,
                                            .executable = executable,
                                            .options = &how,
                                            .argument_lists = lists,
                                            .num_devices = 1,
                                            .num_args = 2,
                                            .output_lists = outputs};
  TRY(api->PJRT_LoadedExecutable_Execute(&run));

  float sums[4];
  PJRT_Buffer_ToHostBuffer_Args read = {.struct_size = sizeof read,
                                        .src = made[0],
                                        .dst = sums,
                                        .dst_size = sizeof sums};
  TRY(api->PJRT_Buffer_ToHostBuffer(&read));
  PJRT_Event_Await_Args wait = {.struct_size = sizeof wait,
                                .event = read.event};
  TRY(api->PJRT_Event_Await(&wait));
  printf("%g %g %g %g\n", sums[0], sums[1], sums[2], sums[3]);
  return 0;
}
