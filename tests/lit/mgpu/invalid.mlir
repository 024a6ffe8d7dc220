// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

// Every message of the verifiers and parsers, with the values it names.

// expected-error @below {{numDevices is 65537; at most 65536 are supported [device_config_c2]}}
mgpu.device_config @config #mgpu.device_config<numDevices = 65537>

// -----

// expected-error @below {{numDevices must be at least 1 [device_config_c1]}}
mgpu.device_config @config #mgpu.device_config<numDevices = 0>

// -----

// expected-error @below {{deviceIds has 3 entries, but numDevices is 2 [device_config_c3]}}
mgpu.device_config @config #mgpu.device_config<numDevices = 2, deviceIds = [0, 1, 2]>

// -----

// expected-error @below {{deviceIds has 1 more than once [device_config_c5]}}
mgpu.device_config @config #mgpu.device_config<numDevices = 3, deviceIds = [1, 0, 1]>

// -----

// expected-error @below {{deviceIds has the negative entry -4 [device_config_c4]}}
mgpu.device_config @config #mgpu.device_config<numDevices = 2, deviceIds = [0, -4]>

// -----

// expected-note @below {{the first is here}}
mgpu.device_config @a #mgpu.device_config<numDevices = 2>
// expected-error @below {{'mgpu.device_config' op a module has only one device_config, this one follows another [device_config_c6]}}
mgpu.device_config @b #mgpu.device_config<numDevices = 2>

// -----

func.func @config_in_function() {
  // expected-error @below {{'mgpu.device_config' op expects parent op 'builtin.module'}}
  mgpu.device_config @a #mgpu.device_config<numDevices = 2>
  return
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 4>
func.func @index_too_large() {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %ok = mgpu.get_device %c3 : !mgpu.device
  // expected-error @below {{'mgpu.get_device' op device index 4 is out of range: the module's device_config has 4 devices [get_device_c1]}}
  %d = mgpu.get_device %c4 : !mgpu.device
  return
}

// -----

// The config may follow; deviceIds are names, not indices.
func.func @index_too_large_config_last() {
  %c1 = arith.constant 1 : index
  // expected-error @below {{'mgpu.get_device' op device index 1 is out of range: the module's device_config has 1 device [get_device_c1]}}
  %d = mgpu.get_device %c1 : !mgpu.device
  return
}
mgpu.device_config @config #mgpu.device_config<numDevices = 1, deviceIds = [7]>

// -----

func.func @index_negative() {
  %c = arith.constant -2 : index
  // expected-error @below {{'mgpu.get_device' op device index -2 is out of range: the least is -1, the host [get_device_c2]}}
  %d = mgpu.get_device %c : !mgpu.device
  return
}

// -----

func.func @wait_for_nothing(%s: !mgpu.stream) {
  // expected-error @below {{'mgpu.stream_wait' op expected at least one stream to wait on [stream_wait_c1]}}
  "mgpu.stream_wait"(%s) : (!mgpu.stream) -> ()
  return
}

// -----

func.func @stream_of_another_device() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %s = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  // expected-error @below {{the stream was created on device 0, not on device 1 [destroy_stream_c1]}}
  mgpu.destroy_stream %d1 %s : !mgpu.device, !mgpu.stream
  return
}

// -----

func.func @stream_types(%d: !mgpu.device, %s: !mgpu.stream) {
  // expected-error @below {{expected 2 types, got 1}}
  mgpu.sync_stream %d %s : !mgpu.stream
  return
}

// -----

func.func @stream_types(%s: !mgpu.stream) {
  // expected-error @below {{expected 1 type, got 2}}
  mgpu.sync_stream %s : !mgpu.stream, !mgpu.stream
  return
}

// -----

func.func @stream_and_stream(%s: !mgpu.stream) {
  // expected-error @below {{the first of two operands must be a device handle, but it is '!mgpu.stream'}}
  mgpu.sync_stream %s %s : !mgpu.stream, !mgpu.stream
  return
}

// -----

func.func @stream_missing(%d: !mgpu.device) {
  // expected-error @below {{expected a stream}}
  mgpu.sync_stream %d, : !mgpu.device
  return
}

// -----

func.func @sync_a_device_as_stream(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sync_stream' op operand #0 must be stream handle, but got '!mgpu.device'}}
  mgpu.sync_stream %d : !mgpu.device
  return
}

// -----

func.func @alloc_dynamic(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.alloc' op result type must have a static shape, got 'memref<4x?xf32>' [alloc_c1]}}
  %p = mgpu.alloc %d : !mgpu.device -> memref<4x?xf32>
  return
}

// -----

func.func @alloc_layout(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.alloc' op result type must have the identity layout, got 'memref<4xf32, strided<[2]>>' [alloc_c2]}}
  %p = mgpu.alloc %d : !mgpu.device -> memref<4xf32, strided<[2]>>
  return
}

// -----

func.func @free_elsewhere() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  // expected-note @below {{allocated here}}
  %p = mgpu.alloc %d0 : !mgpu.device -> memref<4xf32>
  // expected-error @below {{'mgpu.free' op frees on device 1 a buffer allocated on device 0 [free_c1]}}
  mgpu.free %p, %d1 : memref<4xf32>, !mgpu.device
  return
}

// -----

func.func @sharded_free_elsewhere() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  // expected-note @below {{allocated here}}
  %p:2 = mgpu.sharded_alloc %d0, %d1 logicalShape = [4] shardAxis = 0 shardKind = replicate : !mgpu.device, !mgpu.device -> memref<4xf32>, memref<4xf32>
  // expected-error @below {{'mgpu.sharded_free' op frees on device 0 a buffer allocated on device 1 [sharded_free_c3]}}
  mgpu.sharded_free [%p#1, %p#0], [%d0, %d1] : [memref<4xf32>, memref<4xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @sharded_free_counts(%d: !mgpu.device, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.sharded_free' op expected as many buffers as devices, got 2 and 1 [sharded_free_c2]}}
  mgpu.sharded_free [%a, %a], [%d] : [memref<4xf32>, memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @sharded_free_nothing() {
  // expected-error @below {{'mgpu.sharded_free' op expected at least one device [sharded_free_c1]}}
  mgpu.sharded_free [], [] : [], []
  return
}

// -----

func.func @memcpy_element_type(%d: !mgpu.device, %a: memref<4xf32>, %b: memref<4xi32>) {
  // expected-error @below {{'mgpu.memcpy' op source has element type 'i32', but destination has 'f32' [memcpy_c1]}}
  mgpu.memcpy %a, %b, %d, %d : memref<4xf32>, memref<4xi32>, !mgpu.device, !mgpu.device
  return
}

// -----

func.func @memcpy_count(%d: !mgpu.device, %a: memref<4xf32>, %b: memref<2x3xf32>) {
  // expected-error @below {{'mgpu.memcpy' op source has 6 elements, but destination has 4 [memcpy_c3]}}
  mgpu.memcpy %a, %b, %d, %d : memref<4xf32>, memref<2x3xf32>, !mgpu.device, !mgpu.device
  return
}

// -----

func.func @sharded_alloc_nothing() {
  // expected-error @below {{'mgpu.sharded_alloc' op expected at least one device [sharded_alloc_c1]}}
  "mgpu.sharded_alloc"() {logicalShape = array<i64: 4>, shardAxis = 0 : index, shardKind = #mgpu.shard_kind<uniform>} : () -> ()
  return
}

// -----

func.func @sharded_alloc_counts(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op expected as many buffers as devices, got 2 and 1 [sharded_alloc_c2]}}
  %p:2 = mgpu.sharded_alloc %d logicalShape = [4] shardAxis = 0 shardKind = uniform : !mgpu.device -> memref<2xf32>, memref<2xf32>
  return
}

// -----

func.func @sharded_alloc_kind(%d: !mgpu.device) {
  // expected-error @below {{unknown shard kind 'even', expected uniform, uneven or replicate}}
  %p = mgpu.sharded_alloc %d logicalShape = [4] shardAxis = 0 shardKind = even : !mgpu.device -> memref<4xf32>
  return
}

// -----

func.func @sharded_alloc_negative(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op dimension 1 of the logical shape must not be negative, got -4 [sharded_alloc_c3]}}
  %p = mgpu.sharded_alloc %d logicalShape = [4, -4] shardAxis = 0 shardKind = uniform : !mgpu.device -> memref<4x4xf32>
  return
}

// -----

func.func @sharded_alloc_axis(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op axis 1 is out of range for a buffer of rank 1 [sharded_alloc_c4]}}
  %p = mgpu.sharded_alloc %d logicalShape = [4] shardAxis = 1 shardKind = uniform : !mgpu.device -> memref<4xf32>
  return
}

// -----

func.func @sharded_alloc_dynamic(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op result type must have a static shape, got 'memref<?xf32>' [sharded_alloc_c10]}}
  %p = mgpu.sharded_alloc %d logicalShape = [4] shardAxis = 0 shardKind = uniform : !mgpu.device -> memref<?xf32>
  return
}

// -----

func.func @sharded_alloc_element_types(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op shards 0 and 1 have different element types, 'f32' and 'f16' [sharded_alloc_c5]}}
  %p:2 = mgpu.sharded_alloc %d, %d logicalShape = [4] shardAxis = 0 shardKind = uniform : !mgpu.device, !mgpu.device -> memref<2xf32>, memref<2xf16>
  return
}

// -----

func.func @sharded_alloc_rank(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op slice 0 has rank 1, but the whole has 2 [sharded_alloc_c7]}}
  %p = mgpu.sharded_alloc %d logicalShape = [4, 2] shardAxis = 0 shardKind = uniform : !mgpu.device -> memref<8xf32>
  return
}

// -----

func.func @uniform_indivisible(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op size 5 of dimension 0 is not divisible by the number of devices, 2 [sharded_alloc_c6]}}
  %p:2 = mgpu.sharded_alloc %d, %d logicalShape = [5] shardAxis = 0 shardKind = uniform : !mgpu.device, !mgpu.device -> memref<3xf32>, memref<2xf32>
  return
}

// -----

func.func @uniform_sizes(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op slice 0 has size 3 in dimension 0, expected 2 [sharded_alloc_c8]}}
  %p:2 = mgpu.sharded_alloc %d, %d logicalShape = [4] shardAxis = 0 shardKind = uniform : !mgpu.device, !mgpu.device -> memref<3xf32>, memref<1xf32>
  return
}

// -----

func.func @uneven_other_dimension(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op slice 1 has size 6 in dimension 1, expected 5 [sharded_alloc_c8]}}
  %p:2 = mgpu.sharded_alloc %d, %d logicalShape = [4, 5] shardAxis = 0 shardKind = uneven : !mgpu.device, !mgpu.device -> memref<3x5xf32>, memref<1x6xf32>
  return
}

// -----

func.func @uneven_sum(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op shards add up to 5 along dimension 0, but the logical shape has size 4 [sharded_alloc_c9]}}
  %p:2 = mgpu.sharded_alloc %d, %d logicalShape = [4] shardAxis = 0 shardKind = uneven : !mgpu.device, !mgpu.device -> memref<3xf32>, memref<2xf32>
  return
}

// -----

func.func @replicate_part(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op slice 1 has size 2 in dimension 0, expected 4 [sharded_alloc_c8]}}
  %p:2 = mgpu.sharded_alloc %d, %d logicalShape = [4] shardAxis = 0 shardKind = replicate : !mgpu.device, !mgpu.device -> memref<4xf32>, memref<2xf32>
  return
}

// -----

func.func @scatter_counts(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<2xf32>) {
  // expected-error @below {{'mgpu.scatter' op expected as many buffers as devices, got 1 and 2 [scatter_c2]}}
  mgpu.scatter %w, %h, [%a], [%h, %h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<2xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @scatter_nothing(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.scatter' op expected at least one device [scatter_c1]}}
  mgpu.scatter %w, %h, [], [] axis = 0 : memref<4xf32>, !mgpu.device, [], []
  return
}

// -----

func.func @scatter_streams(%h: !mgpu.device, %s: !mgpu.stream, %w: memref<4xf32>, %a: memref<2xf32>) {
  // expected-error @below {{'mgpu.scatter' op expected no stream or one for each device, got 1 for 2 devices [scatter_c3]}}
  mgpu.scatter %w, %h, [%a, %a], [%h, %h] streams [%s] : !mgpu.stream axis = 0 : memref<4xf32>, !mgpu.device, [memref<2xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @scatter_axis(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.scatter' op axis 1 is out of range for a buffer of rank 1 [scatter_c4]}}
  mgpu.scatter %w, %h, [%a], [%h] axis = 1 : memref<4xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @scatter_negative_axis(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.scatter' op axis -1 is out of range for a buffer of rank 1 [scatter_c4]}}
  mgpu.scatter %w, %h, [%a], [%h] axis = -1 : memref<4xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @scatter_indivisible(%h: !mgpu.device, %w: memref<5xf32>, %a: memref<2xf32>) {
  // expected-error @below {{'mgpu.scatter' op size 5 of dimension 0 is not divisible by the number of devices, 2 [scatter_c6]}}
  mgpu.scatter %w, %h, [%a, %a], [%h, %h] axis = 0 : memref<5xf32>, !mgpu.device, [memref<2xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @scatter_slice(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<2xf32>, %b: memref<3xf32>) {
  // expected-error @below {{'mgpu.scatter' op slice 1 has size 3 in dimension 0, expected 2 [scatter_c8]}}
  mgpu.scatter %w, %h, [%a, %b], [%h, %h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<2xf32>, memref<3xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @scatter_element_type(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf64>) {
  // expected-error @below {{'mgpu.scatter' op source has element type 'f32', but destination has 'f64' [scatter_c5]}}
  mgpu.scatter %w, %h, [%a], [%h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf64>], [!mgpu.device]
  return
}

// -----

func.func @scatter_rank(%h: !mgpu.device, %w: memref<4x1xf32>, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.scatter' op slice 0 has rank 1, but the whole has 2 [scatter_c7]}}
  mgpu.scatter %w, %h, [%a], [%h] axis = 0 : memref<4x1xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @scatter_flat_odd(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf32>) {
  // expected-error @below {{a flat list must hold as many buffers as devices, got 3 operands in all}}
  mgpu.scatter %w, %h, %a, %a, %h axis = 0 : memref<4xf32>, !mgpu.device, memref<4xf32>, memref<4xf32>, !mgpu.device
  return
}

// -----

func.func @uneven_scatter_sizes(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op expected one slice size for each device, got 2 for 1 devices [uneven_scatter_c6]}}
  mgpu.uneven_scatter %w, %h, [%a], [%h] sliceSizes = [2, 2] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @uneven_scatter_negative(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op slice size 1 must not be negative, got -1 [uneven_scatter_c9]}}
  mgpu.uneven_scatter %w, %h, [%a, %a], [%h, %h] sliceSizes = [5, -1] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf32>, memref<4xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @uneven_scatter_overflow(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op the sum of the slice sizes overflows [uneven_scatter_c10]}}
  mgpu.uneven_scatter %w, %h, [%a, %a], [%h, %h] sliceSizes = [9223372036854775807, 1] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf32>, memref<4xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @uneven_scatter_sum(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<3xf32>, %b: memref<2xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op slice sizes add up to 5, but dimension 0 of the source has size 4 [uneven_scatter_c11]}}
  mgpu.uneven_scatter %w, %h, [%a, %b], [%h, %h] sliceSizes = [3, 2] axis = 0 : memref<4xf32>, !mgpu.device, [memref<3xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @uneven_scatter_slice(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<3xf32>, %b: memref<2xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op slice 1 has size 2 in dimension 0, expected 1 [uneven_scatter_c8]}}
  mgpu.uneven_scatter %w, %h, [%a, %b], [%h, %h] sliceSizes = [3, 1] axis = 0 : memref<4xf32>, !mgpu.device, [memref<3xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @gather_sum(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<3xf32>, %b: memref<2xf32>) {
  // expected-error @below {{'mgpu.gather' op slices add up to 5 along dimension 0, but the destination has size 4 [gather_c6]}}
  mgpu.gather %w, %h, [%a, %b], [%h, %h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<3xf32>, memref<2xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @gather_other_dimension(%h: !mgpu.device, %w: memref<4x2xf32>, %a: memref<4x3xf32>) {
  // expected-error @below {{'mgpu.gather' op slice 0 has size 3 in dimension 1, expected 2 [gather_c8]}}
  mgpu.gather %w, %h, [%a], [%h] axis = 0 : memref<4x2xf32>, !mgpu.device, [memref<4x3xf32>], [!mgpu.device]
  return
}

// -----

func.func @gather_element_type(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf64>) {
  // expected-error @below {{'mgpu.gather' op source has element type 'f64', but destination has 'f32' [gather_c5]}}
  mgpu.gather %w, %h, [%a], [%h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf64>], [!mgpu.device]
  return
}

// -----

func.func @replicate_shape(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<5xf32>) {
  // expected-error @below {{'mgpu.replicate' op destination 1 must have the shape of the source, 'memref<4xf32>', got 'memref<5xf32>' [replicate_c5]}}
  mgpu.replicate %w, %h, [%h, %h], [%w, %a] : memref<4xf32>, !mgpu.device, [!mgpu.device, !mgpu.device], [memref<4xf32>, memref<5xf32>]
  return
}

// -----

func.func @replicate_element_type(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xi32>) {
  // expected-error @below {{'mgpu.replicate' op source has element type 'f32', but destination has 'i32' [replicate_c4]}}
  mgpu.replicate %w, %h, [%h], [%a] : memref<4xf32>, !mgpu.device, [!mgpu.device], [memref<4xi32>]
  return
}

// -----

func.func @replicate_counts(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.replicate' op expected as many buffers as devices, got 2 and 1 [replicate_c2]}}
  mgpu.replicate %w, %h, [%h], [%w, %w] : memref<4xf32>, !mgpu.device, [!mgpu.device], [memref<4xf32>, memref<4xf32>]
  return
}

// -----

func.func @memcpy_overflow(%d: !mgpu.device, %a: memref<4294967296x4294967296xf32>, %b: memref<0xf32>) {
  // expected-error @below {{'mgpu.memcpy' op the number of elements overflows, got 'memref<0xf32>' and 'memref<4294967296x4294967296xf32>' [memcpy_c2]}}
  mgpu.memcpy %a, %b, %d, %d : memref<4294967296x4294967296xf32>, memref<0xf32>, !mgpu.device, !mgpu.device
  return
}

// -----

func.func @gather_overflow(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<9223372036854775807xf32>, %b: memref<5xf32>) {
  // expected-error @below {{'mgpu.gather' op slices add up to 9223372036854775807 along dimension 0, but the destination has size 4 [gather_c6]}}
  mgpu.gather %w, %h, [%a, %b], [%h, %h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<9223372036854775807xf32>, memref<5xf32>], [!mgpu.device, !mgpu.device]
  return
}

// -----

func.func @sync_stream_of_another_device() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %s = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  // expected-error @below {{the stream was created on device 0, not on device 1 [sync_stream_c1]}}
  mgpu.sync_stream %d1 %s : !mgpu.device, !mgpu.stream
  return
}

// -----

func.func @sharded_alloc_layout(%d: !mgpu.device) {
  // expected-error @below {{'mgpu.sharded_alloc' op result type must have the identity layout, got 'memref<4xf32, strided<[2]>>' [sharded_alloc_c11]}}
  %p = mgpu.sharded_alloc %d logicalShape = [4] shardAxis = 0 shardKind = uniform : !mgpu.device -> memref<4xf32, strided<[2]>>
  return
}

// -----

func.func @uneven_scatter_nothing(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op expected at least one device [uneven_scatter_c1]}}
  mgpu.uneven_scatter %w, %h, [], [] sliceSizes = [] axis = 0 : memref<4xf32>, !mgpu.device, [], []
  return
}

// -----

func.func @uneven_scatter_counts(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op expected as many buffers as devices, got 2 and 1 [uneven_scatter_c2]}}
  mgpu.uneven_scatter %w, %h, [%w, %w], [%h] sliceSizes = [4] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf32>, memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @uneven_scatter_streams(%h: !mgpu.device, %s: !mgpu.stream, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op expected no stream or one for each device, got 2 for 1 devices [uneven_scatter_c3]}}
  mgpu.uneven_scatter %w, %h, [%w], [%h] streams [%s, %s] : !mgpu.stream, !mgpu.stream sliceSizes = [4] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @uneven_scatter_axis(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op axis 2 is out of range for a buffer of rank 1 [uneven_scatter_c4]}}
  mgpu.uneven_scatter %w, %h, [%w], [%h] sliceSizes = [4] axis = 2 : memref<4xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @uneven_scatter_element_type(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4xf64>) {
  // expected-error @below {{'mgpu.uneven_scatter' op source has element type 'f32', but destination has 'f64' [uneven_scatter_c5]}}
  mgpu.uneven_scatter %w, %h, [%a], [%h] sliceSizes = [4] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf64>], [!mgpu.device]
  return
}

// -----

func.func @uneven_scatter_rank(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4x1xf32>) {
  // expected-error @below {{'mgpu.uneven_scatter' op slice 0 has rank 2, but the whole has 1 [uneven_scatter_c7]}}
  mgpu.uneven_scatter %w, %h, [%a], [%h] sliceSizes = [4] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4x1xf32>], [!mgpu.device]
  return
}

// -----

func.func @gather_nothing(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.gather' op expected at least one device [gather_c1]}}
  mgpu.gather %w, %h, [], [] axis = 0 : memref<4xf32>, !mgpu.device, [], []
  return
}

// -----

func.func @gather_counts(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.gather' op expected as many buffers as devices, got 2 and 1 [gather_c2]}}
  mgpu.gather %w, %h, [%w, %w], [%h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf32>, memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @gather_streams(%h: !mgpu.device, %s: !mgpu.stream, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.gather' op expected no stream or one for each device, got 2 for 1 devices [gather_c3]}}
  mgpu.gather %w, %h, [%w], [%h] streams [%s, %s] : !mgpu.stream, !mgpu.stream axis = 0 : memref<4xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @gather_axis(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.gather' op axis 1 is out of range for a buffer of rank 1 [gather_c4]}}
  mgpu.gather %w, %h, [%w], [%h] axis = 1 : memref<4xf32>, !mgpu.device, [memref<4xf32>], [!mgpu.device]
  return
}

// -----

func.func @gather_rank(%h: !mgpu.device, %w: memref<4xf32>, %a: memref<4x1xf32>) {
  // expected-error @below {{'mgpu.gather' op slice 0 has rank 2, but the whole has 1 [gather_c7]}}
  mgpu.gather %w, %h, [%a], [%h] axis = 0 : memref<4xf32>, !mgpu.device, [memref<4x1xf32>], [!mgpu.device]
  return
}

// -----

func.func @replicate_nothing(%h: !mgpu.device, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.replicate' op expected at least one device [replicate_c1]}}
  mgpu.replicate %w, %h, [], [] : memref<4xf32>, !mgpu.device, [], []
  return
}

// -----

func.func @replicate_streams(%h: !mgpu.device, %s: !mgpu.stream, %w: memref<4xf32>) {
  // expected-error @below {{'mgpu.replicate' op expected no stream or one for each device, got 2 for 1 devices [replicate_c3]}}
  mgpu.replicate %w, %h, [%h], [%w] streams [%s, %s] : !mgpu.stream, !mgpu.stream : memref<4xf32>, !mgpu.device, [!mgpu.device], [memref<4xf32>]
  return
}

// -----

func.func @output_text_takes_nothing(%m: memref<4xf32>) {
  // expected-error @below {{of kind text takes no source [output_c1]}}
  mgpu.output <text> "hello" %m : memref<4xf32>
  return
}

// -----

func.func @output_memref_takes_one() {
  // expected-error @below {{needs a source [output_c1]}}
  mgpu.output <memref> ""
  return
}

// -----

func.func @output_check_takes_one_bit(%m: memref<2xi1>) {
  // expected-error @below {{of kind check needs a memref of one i1, got 'memref<2xi1>' [output_c2]}}
  mgpu.output <check> "holds" %m : memref<2xi1>
  return
}

// -----

func.func @output_flops_takes_one_number(%m: memref<1xf32>) {
  // expected-error @below {{of kind flops needs a memref of one f64, got 'memref<1xf32>' [output_c3]}}
  mgpu.output <flops> "" %m : memref<1xf32>
  return
}
