// RUN: mgpu-opt %s | FileCheck %s
// RUN: mgpu-opt %s > %t.once && mgpu-opt %t.once > %t.twice && diff %t.once %t.twice
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt > %t.generic && diff %t.once %t.generic
// RUN: mgpu-opt --emit-bytecode %s | mgpu-opt > %t.bytecode && diff %t.once %t.bytecode

// Every operation, type and attribute in the canonical spelling.

// CHECK: mgpu.device_config @config #mgpu.device_config<numDevices = 4, deviceIds = [0, 2, 4, 6]>
mgpu.device_config @config #mgpu.device_config<numDevices = 4, deviceIds = [0, 2, 4, 6]>

// CHECK: mgpu.device_config @plain #mgpu.device_config<numDevices = 2> {note = "kept"}
module @nested {
  mgpu.device_config @plain #mgpu.device_config<numDevices = 2> {note = "kept"}
}

// CHECK-LABEL: func.func @types(
// CHECK-SAME: !mgpu.device, {{.*}}!mgpu.stream, {{.*}}!mgpu.communicator
func.func @types(%d: !mgpu.device, %s: !mgpu.stream, %c: !mgpu.communicator) {
  return
}

// CHECK-LABEL: func.func @devices
// CHECK-SAME: (%[[I:.*]]: index)
func.func @devices(%i: index) {
  %c-1 = arith.constant -1 : index
  %c3 = arith.constant 3 : index
  // CHECK: %host = mgpu.get_device %c-1 : !mgpu.device
  %h = mgpu.get_device %c-1 : !mgpu.device
  // CHECK: %dev3 = mgpu.get_device %c3 {note} : !mgpu.device
  %d = mgpu.get_device %c3 {note} : !mgpu.device
  // CHECK: %dev = mgpu.get_device %[[I]] : !mgpu.device
  %e = mgpu.get_device %i : !mgpu.device
  return
}

// CHECK-LABEL: func.func @streams
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[E:.*]]: !mgpu.device)
func.func @streams(%d: !mgpu.device, %e: !mgpu.device) {
  // CHECK: %[[S:.*]] = mgpu.create_stream %[[D]] : !mgpu.device -> !mgpu.stream
  %s = mgpu.create_stream %d : !mgpu.device -> !mgpu.stream
  // CHECK: %[[T:.*]] = mgpu.create_stream %[[E]] {priority = 1 : i32} : !mgpu.device -> !mgpu.stream
  %t = mgpu.create_stream %e {priority = 1 : i32} : !mgpu.device -> !mgpu.stream
  // CHECK: mgpu.stream_wait %[[S]], %[[T]] : !mgpu.stream, !mgpu.stream
  mgpu.stream_wait %s, %t : !mgpu.stream, !mgpu.stream
  // CHECK: mgpu.stream_wait %[[S]], %[[T]], %[[S]] {note} : !mgpu.stream, !mgpu.stream, !mgpu.stream
  mgpu.stream_wait %s, %t, %s {note} : !mgpu.stream, !mgpu.stream, !mgpu.stream
  // CHECK: mgpu.sync_stream %[[S]] {note} : !mgpu.stream
  mgpu.sync_stream %s {note} : !mgpu.stream
  // CHECK: mgpu.sync_device %[[D]] : !mgpu.device
  mgpu.sync_device %d : !mgpu.device
  // CHECK: mgpu.destroy_stream %[[S]] : !mgpu.stream
  mgpu.destroy_stream %s : !mgpu.stream
  // CHECK: mgpu.destroy_stream %[[T]] {note} : !mgpu.stream
  mgpu.destroy_stream %t {note} : !mgpu.stream
  return
}

// CHECK-LABEL: func.func @memory
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[E:.*]]: !mgpu.device, %[[S:.*]]: !mgpu.stream, %[[H:.*]]: memref<1024xf32>, %[[DYN:.*]]: memref<?xf32>)
func.func @memory(%d: !mgpu.device, %e: !mgpu.device, %s: !mgpu.stream,
                  %h: memref<1024xf32>, %dyn: memref<?xf32>) {
  // CHECK: %[[P:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<32x32xf32>
  %p = mgpu.alloc %d : !mgpu.device -> memref<32x32xf32>
  // CHECK: mgpu.memcpy %[[P]], %[[H]], %[[D]], %[[E]] : memref<32x32xf32>, memref<1024xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %p, %h, %d, %e : memref<32x32xf32>, memref<1024xf32>, !mgpu.device, !mgpu.device
  // CHECK: mgpu.memcpy %[[DYN]], %[[P]], %[[E]], %[[D]] stream %[[S]] : !mgpu.stream {note} : memref<?xf32>, memref<32x32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dyn, %p, %e, %d stream %s : !mgpu.stream {note} : memref<?xf32>, memref<32x32xf32>, !mgpu.device, !mgpu.device
  // CHECK: mgpu.free %[[P]], %[[D]] : memref<32x32xf32>, !mgpu.device
  mgpu.free %p, %d : memref<32x32xf32>, !mgpu.device
  return
}

// CHECK-LABEL: func.func @shards
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[E:.*]]: !mgpu.device)
func.func @shards(%d: !mgpu.device, %e: !mgpu.device) {
  // CHECK: %[[U:.*]]:2 = mgpu.sharded_alloc %[[D]], %[[E]] logicalShape = [1024, 512] shardAxis = 0 shardKind = uniform : !mgpu.device, !mgpu.device -> memref<512x512xf32>, memref<512x512xf32>
  %u:2 = mgpu.sharded_alloc %d, %e logicalShape = [1024, 512] shardAxis = 0 shardKind = uniform : !mgpu.device, !mgpu.device -> memref<512x512xf32>, memref<512x512xf32>
  // CHECK: %{{.*}}:2 = mgpu.sharded_alloc %[[D]], %[[E]] logicalShape = [4, 7] shardAxis = 1 shardKind = uneven {note} : !mgpu.device, !mgpu.device -> memref<4x5xi8>, memref<4x2xi8>
  %v:2 = mgpu.sharded_alloc %d, %e logicalShape = [4, 7] shardAxis = 1 shardKind = uneven {note} : !mgpu.device, !mgpu.device -> memref<4x5xi8>, memref<4x2xi8>
  // CHECK: %{{.*}}:2 = mgpu.sharded_alloc %[[D]], %[[E]] logicalShape = [7] shardAxis = 0 shardKind = replicate : !mgpu.device, !mgpu.device -> memref<7xf64>, memref<7xf64>
  %w:2 = mgpu.sharded_alloc %d, %e logicalShape = [7] shardAxis = 0 shardKind = replicate : !mgpu.device, !mgpu.device -> memref<7xf64>, memref<7xf64>
  // CHECK: mgpu.sharded_free [%[[U]]#0, %[[U]]#1], [%[[D]], %[[E]]] : [memref<512x512xf32>, memref<512x512xf32>], [!mgpu.device, !mgpu.device]
  mgpu.sharded_free [%u#0, %u#1], [%d, %e] : [memref<512x512xf32>, memref<512x512xf32>], [!mgpu.device, !mgpu.device]
  return
}

// CHECK-LABEL: func.func @distribution
// CHECK-SAME: (%[[H:.*]]: !mgpu.device, %[[D:.*]]: !mgpu.device, %[[E:.*]]: !mgpu.device, %[[S:.*]]: !mgpu.stream, %[[T:.*]]: !mgpu.stream, %[[W:.*]]: memref<8x10xf32>, %[[A:.*]]: memref<4x10xf32>, %[[B:.*]]: memref<4x10xf32>, %[[X:.*]]: memref<8x7xf32>, %[[Y:.*]]: memref<8x3xf32>)
func.func @distribution(%h: !mgpu.device, %d: !mgpu.device, %e: !mgpu.device, %s: !mgpu.stream, %t: !mgpu.stream,
    %w: memref<8x10xf32>, %a: memref<4x10xf32>, %b: memref<4x10xf32>, %x: memref<8x7xf32>, %y: memref<8x3xf32>) {
  // CHECK: mgpu.scatter %[[W]], %[[H]], [%[[A]], %[[B]]], [%[[D]], %[[E]]] axis = 0 : memref<8x10xf32>, !mgpu.device, [memref<4x10xf32>, memref<4x10xf32>], [!mgpu.device, !mgpu.device]
  mgpu.scatter %w, %h, [%a, %b], [%d, %e] axis = 0 : memref<8x10xf32>, !mgpu.device, [memref<4x10xf32>, memref<4x10xf32>], [!mgpu.device, !mgpu.device]
  // CHECK: mgpu.scatter %[[W]], %[[H]], [%[[A]], %[[B]]], [%[[D]], %[[E]]] streams [%[[S]], %[[T]]] : !mgpu.stream, !mgpu.stream axis = 0 {note} : memref<8x10xf32>
  mgpu.scatter %w, %h, [%a, %b], [%d, %e] streams [%s, %t] : !mgpu.stream, !mgpu.stream axis = 0 {note} : memref<8x10xf32>, !mgpu.device, [memref<4x10xf32>, memref<4x10xf32>], [!mgpu.device, !mgpu.device]
  // CHECK: mgpu.uneven_scatter %[[W]], %[[H]], [%[[X]], %[[Y]]], [%[[D]], %[[E]]] sliceSizes = [7, 3] axis = 1 : memref<8x10xf32>, !mgpu.device, [memref<8x7xf32>, memref<8x3xf32>], [!mgpu.device, !mgpu.device]
  mgpu.uneven_scatter %w, %h, [%x, %y], [%d, %e] sliceSizes = [7, 3] axis = 1 : memref<8x10xf32>, !mgpu.device, [memref<8x7xf32>, memref<8x3xf32>], [!mgpu.device, !mgpu.device]
  // CHECK: mgpu.uneven_scatter %[[W]], %[[H]], [%[[X]], %[[Y]]], [%[[D]], %[[E]]] streams [%[[S]], %[[T]]] : !mgpu.stream, !mgpu.stream sliceSizes = [7, 3] axis = 1
  mgpu.uneven_scatter %w, %h, [%x, %y], [%d, %e] streams [%s, %t] : !mgpu.stream, !mgpu.stream sliceSizes = [7, 3] axis = 1 : memref<8x10xf32>, !mgpu.device, [memref<8x7xf32>, memref<8x3xf32>], [!mgpu.device, !mgpu.device]
  // CHECK: mgpu.gather %[[W]], %[[H]], [%[[X]], %[[Y]]], [%[[D]], %[[E]]] axis = 1 : memref<8x10xf32>, !mgpu.device, [memref<8x7xf32>, memref<8x3xf32>], [!mgpu.device, !mgpu.device]
  mgpu.gather %w, %h, [%x, %y], [%d, %e] axis = 1 : memref<8x10xf32>, !mgpu.device, [memref<8x7xf32>, memref<8x3xf32>], [!mgpu.device, !mgpu.device]
  // CHECK: mgpu.gather %[[W]], %[[H]], [%[[A]], %[[B]]], [%[[D]], %[[E]]] streams [%[[S]], %[[T]]] : !mgpu.stream, !mgpu.stream axis = 0
  mgpu.gather %w, %h, [%a, %b], [%d, %e] streams [%s, %t] : !mgpu.stream, !mgpu.stream axis = 0 : memref<8x10xf32>, !mgpu.device, [memref<4x10xf32>, memref<4x10xf32>], [!mgpu.device, !mgpu.device]
  // CHECK: mgpu.replicate %[[A]], %[[H]], [%[[D]]], [%[[B]]] : memref<4x10xf32>, !mgpu.device, [!mgpu.device], [memref<4x10xf32>]
  mgpu.replicate %a, %h, [%d], [%b] : memref<4x10xf32>, !mgpu.device, [!mgpu.device], [memref<4x10xf32>]
  // CHECK: mgpu.replicate %[[A]], %[[H]], [%[[D]]], [%[[B]]] streams [%[[S]]] : !mgpu.stream {note} : memref<4x10xf32>, !mgpu.device, [!mgpu.device], [memref<4x10xf32>]
  mgpu.replicate %a, %h, [%d], [%b] streams [%s] : !mgpu.stream {note} : memref<4x10xf32>, !mgpu.device, [!mgpu.device], [memref<4x10xf32>]
  return
}

// CHECK-LABEL: func.func @collectives
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[E:.*]]: !mgpu.device, %[[S:.*]]: !mgpu.stream, %[[A:.*]]: memref<8xf32>, %[[B:.*]]: memref<8xf32>, %[[W:.*]]: memref<16xf32>, %[[R:.*]]: index)
func.func @collectives(%d: !mgpu.device, %e: !mgpu.device, %s: !mgpu.stream, %a: memref<8xf32>, %b: memref<8xf32>, %w: memref<16xf32>, %r: index) {
  // CHECK: %[[C:.*]] = mgpu.create_communicator %[[D]], %[[E]] : !mgpu.device, !mgpu.device -> !mgpu.communicator
  %c = mgpu.create_communicator %d, %e : !mgpu.device, !mgpu.device -> !mgpu.communicator
  // CHECK: mgpu.all_reduce %[[A]], %[[B]], %[[C]], sum : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_reduce %a, %b, %c, sum : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.all_reduce %[[A]], %[[A]], %[[C]], prod stream %[[S]] : !mgpu.stream : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_reduce %a, %a, %c, prod stream %s : !mgpu.stream : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.all_reduce %[[A]], %[[B]], %[[C]], min {note}
  mgpu.all_reduce %a, %b, %c, min {note} : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.all_reduce %[[A]], %[[B]], %[[C]], max :
  mgpu.all_reduce %a, %b, %c, max : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.all_gather %[[A]], %[[W]], %[[C]] : memref<8xf32>, memref<16xf32>, !mgpu.communicator
  mgpu.all_gather %a, %w, %c : memref<8xf32>, memref<16xf32>, !mgpu.communicator
  // CHECK: mgpu.all_gather %[[A]], %[[B]], %[[C]] stream %[[S]] : !mgpu.stream {note} : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_gather %a, %b, %c stream %s : !mgpu.stream {note} : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.broadcast %[[A]], %[[C]], %[[R]] : memref<8xf32>, !mgpu.communicator
  mgpu.broadcast %a, %c, %r : memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.broadcast %[[A]], %[[C]], %[[R]] stream %[[S]] : !mgpu.stream {note} : memref<8xf32>, !mgpu.communicator
  mgpu.broadcast %a, %c, %r stream %s : !mgpu.stream {note} : memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.send %[[A]], %[[C]], %[[R]] : memref<8xf32>, !mgpu.communicator
  mgpu.send %a, %c, %r : memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.send %[[A]], %[[C]], %[[R]] stream %[[S]] : !mgpu.stream : memref<8xf32>, !mgpu.communicator
  mgpu.send %a, %c, %r stream %s : !mgpu.stream : memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.recv %[[B]], %[[C]], %[[R]] : memref<8xf32>, !mgpu.communicator
  mgpu.recv %b, %c, %r : memref<8xf32>, !mgpu.communicator
  // CHECK: mgpu.recv %[[B]], %[[C]], %[[R]] stream %[[S]] : !mgpu.stream : memref<8xf32>, !mgpu.communicator
  mgpu.recv %b, %c, %r stream %s : !mgpu.stream : memref<8xf32>, !mgpu.communicator
  return
}

// CHECK-LABEL: func.func @exchange
// CHECK-SAME: (%[[C:.*]]: !mgpu.communicator, %[[S:.*]]: !mgpu.stream, %[[A:.*]]: memref<4x6xf32>, %[[B:.*]]: memref<4x3xf32>, %[[T:.*]]: memref<2x12xf32>)
func.func @exchange(%c: !mgpu.communicator, %s: !mgpu.stream, %a: memref<4x6xf32>, %b: memref<4x3xf32>, %t: memref<2x12xf32>) {
  // CHECK: mgpu.all_gather %[[B]], %[[A]], %[[C]] axis = 1 : memref<4x3xf32>, memref<4x6xf32>, !mgpu.communicator
  mgpu.all_gather %b, %a, %c axis = 1 : memref<4x3xf32>, memref<4x6xf32>, !mgpu.communicator
  // CHECK: mgpu.all_gather %[[B]], %[[A]], %[[C]] stream %[[S]] : !mgpu.stream axis = 1 {note} : memref<4x3xf32>, memref<4x6xf32>, !mgpu.communicator
  mgpu.all_gather %b, %a, %c stream %s : !mgpu.stream axis = 1 {note} : memref<4x3xf32>, memref<4x6xf32>, !mgpu.communicator
  // CHECK: mgpu.all_gather %[[A]], %[[A]], %[[C]] : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  mgpu.all_gather %a, %a, %c axis = 0 : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  // CHECK: mgpu.reduce_scatter %[[A]], %[[B]], %[[C]], sum axis = 1 : memref<4x6xf32>, memref<4x3xf32>, !mgpu.communicator
  mgpu.reduce_scatter %a, %b, %c, "sum" axis = 1 : memref<4x6xf32>, memref<4x3xf32>, !mgpu.communicator
  // CHECK: mgpu.reduce_scatter %[[A]], %[[A]], %[[C]], max stream %[[S]] : !mgpu.stream {note} : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  mgpu.reduce_scatter %a, %a, %c, max stream %s : !mgpu.stream {note} : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  // CHECK: mgpu.all_to_all %[[A]], %[[T]], %[[C]] splitAxis = 0 concatAxis = 1 : memref<4x6xf32>, memref<2x12xf32>, !mgpu.communicator
  mgpu.all_to_all %a, %t, %c splitAxis = 0 concatAxis = 1 : memref<4x6xf32>, memref<2x12xf32>, !mgpu.communicator
  // CHECK: mgpu.all_to_all %[[A]], %[[A]], %[[C]] stream %[[S]] : !mgpu.stream splitAxis = 0 concatAxis = 0 {note} : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  mgpu.all_to_all %a, %a, %c stream %s : !mgpu.stream splitAxis = 0 concatAxis = 0 {note} : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  // CHECK: mgpu.permute %[[A]], %[[A]], %[[C]] pairs = {{\[\[}}0, 1], [1, 0]] : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  mgpu.permute %a, %a, %c pairs = [[0, 1], [1, 0]] : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  // CHECK: mgpu.permute %[[A]], %[[A]], %[[C]] stream %[[S]] : !mgpu.stream pairs = [] {note} : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  mgpu.permute %a, %a, %c stream %s : !mgpu.stream pairs = [] {note} : memref<4x6xf32>, memref<4x6xf32>, !mgpu.communicator
  return
}
