/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef MGPU_PIPELINE_PJRT_ABI_H
#define MGPU_PIPELINE_PJRT_ABI_H

/* The binary interface of PJRT plugins, version 0.114, declared here so that
 * nothing of OpenXLA is needed to build one or to call one. Names, fields and
 * numbers are those of xla/pjrt/c/pjrt_c_api.h (tests/pjrt/abi.py compares them
 * with it). `struct_size` says which fields the caller knows: what lies behind
 * is neither read nor written. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Callers may give numbers that are not listed here. */
#ifdef __cplusplus
#define PJRT_NUMBER : int
extern "C" {
#else
#define PJRT_NUMBER
#endif

enum { PJRT_API_MAJOR = 0, PJRT_API_MINOR = 114 };

typedef enum PJRT_Extension_Type PJRT_NUMBER {
  PJRT_Extension_Type_Layouts = 4,
} PJRT_Extension_Type;

typedef struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  struct PJRT_Extension_Base *next;
} PJRT_Extension_Base;

typedef struct PJRT_Api_Version {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  int major_version, minor_version;
} PJRT_Api_Version;

typedef enum PJRT_Error_Code PJRT_NUMBER {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
} PJRT_Error_Code;

/* Objects that only their maker looks into; errors and memories begin with a
 * table of functions. */
typedef struct PJRT_Error PJRT_Error;
typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
typedef struct PJRT_Memory PJRT_Memory;
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;
typedef struct PJRT_SerializedTopology PJRT_SerializedTopology;
typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;
typedef struct PJRT_SerializedCompileOptions PJRT_SerializedCompileOptions;
typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
typedef struct PJRT_Buffer PJRT_Buffer;
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
typedef struct PJRT_AsyncHostToDeviceTransferManager
    PJRT_AsyncHostToDeviceTransferManager;
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;

typedef void (*PJRT_Error_PayloadVisitor)(const char *key, size_t key_size,
                                          const char *value, size_t value_size,
                                          void *user_arg);

typedef struct PJRT_Error_FunctionTable {
  size_t struct_size, instance_size;
  PJRT_Extension_Base *extension_start;
  void (*destroy)(PJRT_Error *error);
  void (*message)(const PJRT_Error *error, const char **message,
                  size_t *message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error *error);
  void (*for_each_payload)(const PJRT_Error *error,
                           PJRT_Error_PayloadVisitor visitor, void *user_arg);
} PJRT_Error_FunctionTable;

typedef struct PJRT_Memory_FunctionTable {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  size_t instance_struct_size;
  void *(*get_user_data)(PJRT_Memory *memory, const void *key);
  void (*set_user_data)(PJRT_Memory *memory, const void *key, void *data,
                        void (*destroy)(void *));
} PJRT_Memory_FunctionTable;

typedef enum PJRT_NamedValue_Type PJRT_NUMBER {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64,
  PJRT_NamedValue_kInt64List,
  PJRT_NamedValue_kFloat,
  PJRT_NamedValue_kBool,
} PJRT_NamedValue_Type;

typedef struct PJRT_NamedValue {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const char *name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char *string_value;
    int64_t int64_value;
    const int64_t *int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size;
} PJRT_NamedValue;

typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error *error, void *user_arg);
/* The stores of keys and values by which several processes meet. */
typedef void *PJRT_KeyValueGetCallback;
typedef void *PJRT_KeyValuePutCallback;
typedef void *PJRT_KeyValueTryGetCallback;
typedef struct PJRT_ProcessInfo PJRT_ProcessInfo;

typedef struct PJRT_Program {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  char *code;
  size_t code_size;
  const char *format;
  size_t format_size;
} PJRT_Program;

typedef enum PJRT_Buffer_Type PJRT_NUMBER {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_PRED = 1,
  PJRT_Buffer_Type_S8 = 2,
  PJRT_Buffer_Type_S16 = 3,
  PJRT_Buffer_Type_S32 = 4,
  PJRT_Buffer_Type_S64 = 5,
  PJRT_Buffer_Type_U8 = 6,
  PJRT_Buffer_Type_U16 = 7,
  PJRT_Buffer_Type_U32 = 8,
  PJRT_Buffer_Type_U64 = 9,
  PJRT_Buffer_Type_F16 = 10,
  PJRT_Buffer_Type_F32 = 11,
  PJRT_Buffer_Type_F64 = 12,
  PJRT_Buffer_Type_BF16 = 13,
  PJRT_Buffer_Type_F8E5M2 = 16,
  PJRT_Buffer_Type_F8E4M3FN = 17,
} PJRT_Buffer_Type;

typedef enum PJRT_HostBufferSemantics PJRT_NUMBER {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes,
  PJRT_HostBufferSemantics_kImmutableZeroCopy,
  PJRT_HostBufferSemantics_kMutableZeroCopy,
} PJRT_HostBufferSemantics;

typedef enum PJRT_Buffer_MemoryLayout_Type PJRT_NUMBER {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides,
} PJRT_Buffer_MemoryLayout_Type;

typedef struct PJRT_Buffer_MemoryLayout_Tiled {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const int64_t *minor_to_major;
  size_t minor_to_major_size;
  const int64_t *tile_dims;
  const size_t *tile_dim_sizes;
  size_t num_tiles;
} PJRT_Buffer_MemoryLayout_Tiled;

typedef struct PJRT_Buffer_MemoryLayout_Strides {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const int64_t *byte_strides;
  size_t num_byte_strides;
} PJRT_Buffer_MemoryLayout_Strides;

typedef struct PJRT_Buffer_MemoryLayout {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_Buffer_MemoryLayout_Type type;
} PJRT_Buffer_MemoryLayout;

typedef struct PJRT_ShapeSpec {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
} PJRT_ShapeSpec;

typedef struct PJRT_LogicalDeviceIds {
  int replica, partition;
} PJRT_LogicalDeviceIds;

typedef struct PJRT_Chunk {
  void *data;
  size_t size;
  void (*deleter)(void *data, void *deleter_arg);
  void *deleter_arg;
} PJRT_Chunk;

typedef struct PJRT_SendCallbackInfo PJRT_SendCallbackInfo;
typedef struct PJRT_RecvCallbackInfo PJRT_RecvCallbackInfo;
typedef struct PJRT_MultiSlice_Config PJRT_MultiSlice_Config;
typedef struct PJRT_HloOutputCallbackInfo PJRT_HloOutputCallbackInfo;
typedef struct PJRT_LoadOptions PJRT_LoadOptions;

typedef struct PJRT_ExecuteOptions {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  PJRT_SendCallbackInfo **send_callbacks;
  PJRT_RecvCallbackInfo **recv_callbacks;
  size_t num_send_ops, num_recv_ops;
  int launch_id;
  const int64_t *non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext *context;
  const char *call_location;
  size_t num_tasks;
  int *task_ids;
  int64_t *incarnation_ids;
  PJRT_MultiSlice_Config *multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  PJRT_HloOutputCallbackInfo *hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
} PJRT_ExecuteOptions;

typedef void PJRT_Buffer_CopyRawToHostFuture_Callback_Args;
typedef void PJRT_Buffer_DonateWithControlDependency_Callback_Args;

/* The argument of each call, and the call: PJRT_Client_Create_Args,
 * PJRT_Client_Create. */
#define PJRT_ARGUMENT(name, result, ...)                                       \
  typedef struct PJRT_##name##_Args {                                          \
    size_t struct_size;                                                        \
    PJRT_Extension_Base *extension_start;                                      \
    __VA_ARGS__                                                                \
  } PJRT_##name##_Args;                                                        \
  typedef result PJRT_##name(PJRT_##name##_Args *args);
#define CALL(name, ...) PJRT_ARGUMENT(name, PJRT_Error *, __VA_ARGS__)
#define CALL_WITHOUT_ERROR(name, ...) PJRT_ARGUMENT(name, void, __VA_ARGS__)
#include "Calls.inc"
#undef PJRT_ARGUMENT

typedef struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  PJRT_Api_Version pjrt_api_version;
#define CALL(name, ...) PJRT_##name *PJRT_##name;
#define CALL_WITHOUT_ERROR(name, ...) PJRT_##name *PJRT_##name;
#include "Calls.inc"
} PJRT_Api;

/* The extension that says how tensors lie in memory. */
typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;

#define LAYOUTS_CALL(name, ...)                                                \
  typedef struct PJRT_Layouts_##name##_Args {                                  \
    size_t struct_size;                                                        \
    PJRT_Extension_Base *extension_start;                                      \
    __VA_ARGS__                                                                \
  } PJRT_Layouts_##name##_Args;                                                \
  typedef PJRT_Error *PJRT_Layouts_##name(PJRT_Layouts_##name##_Args *args);
/* clang-format off */
LAYOUTS_CALL(MemoryLayout_Destroy, PJRT_Layouts_MemoryLayout *layout;)
LAYOUTS_CALL(MemoryLayout_Serialize, PJRT_Layouts_MemoryLayout *layout;
  const char *serialized_bytes; size_t serialized_bytes_size;
  PJRT_Layouts_SerializedLayout *serialized_layout;
  void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout *layout);)
LAYOUTS_CALL(PJRT_Client_GetDefaultLayout, PJRT_Client *client;
  PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims;
  PJRT_Layouts_MemoryLayout *layout;)
LAYOUTS_CALL(PJRT_Buffer_MemoryLayout, PJRT_Buffer *buffer;
  PJRT_Layouts_MemoryLayout *layout;)
LAYOUTS_CALL(PJRT_Topology_GetDefaultLayout,
  PJRT_TopologyDescription *topology_description; PJRT_Buffer_Type type;
  const int64_t *dims; size_t num_dims; PJRT_Layouts_MemoryLayout *layout;)
LAYOUTS_CALL(PJRT_Executable_GetOutputLayouts, PJRT_Executable *executable;
  size_t num_outputs; PJRT_Layouts_MemoryLayout *const *layouts;)
LAYOUTS_CALL(PJRT_Executable_GetParameterLayouts, PJRT_Executable *executable;
  size_t num_parameters; PJRT_Layouts_MemoryLayout *const *layouts;)
/* clang-format on */
#undef LAYOUTS_CALL

typedef struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Layouts_MemoryLayout_Destroy *memory_layout_destroy;
  PJRT_Layouts_MemoryLayout_Serialize *memory_layout_serialize;
  PJRT_Layouts_PJRT_Client_GetDefaultLayout *client_get_default_layout;
  PJRT_Layouts_PJRT_Buffer_MemoryLayout *buffer_memory_layout;
  PJRT_Layouts_PJRT_Topology_GetDefaultLayout *topology_get_default_layout;
  PJRT_Layouts_PJRT_Executable_GetOutputLayouts *executable_get_output_layouts;
  PJRT_Layouts_PJRT_Executable_GetParameterLayouts
      *executable_get_parameter_layouts;
} PJRT_Layouts_Extension;

/* The one symbol of a plugin. */
const PJRT_Api *GetPjrtApi(void);

#undef PJRT_NUMBER
#ifdef __cplusplus
}
#endif

#endif /* MGPU_PIPELINE_PJRT_ABI_H */
