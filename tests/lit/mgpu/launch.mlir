// RUN: mgpu-opt %s | FileCheck %s
// RUN: mgpu-opt %s > %t.once && mgpu-opt %t.once > %t.twice && diff %t.once %t.twice
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt > %t.generic && diff %t.once %t.generic
// RUN: mgpu-opt --emit-bytecode %s | mgpu-opt > %t.bytecode && diff %t.once %t.bytecode

// Both spellings of a launch, and each optional part alone and together.

!tile = memref<32xf32, #gpu.address_space<workgroup>>

// CHECK-LABEL: func.func @launches
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[S:.*]]: !mgpu.stream, %[[A:.*]]: memref<8xf32>, %[[N:.*]]: index, %[[BYTES:.*]]: i32)
func.func @launches(%d: !mgpu.device, %s: !mgpu.stream, %a: memref<8xf32>, %n: index, %bytes: i32) {
  // CHECK: mgpu.launch %[[D]] grid(%[[N]]) block(%[[N]]) {
  // CHECK-NEXT: }
  mgpu.launch %d grid(%n) block(%n) {
  }

  // The spelling in circulation: blanks, three sizes, a terminator.
  // CHECK-NEXT: mgpu.launch %[[D]] grid(%[[N]], %[[N]], %[[N]]) block(%[[N]], %[[N]]) stream %[[S]] {
  // CHECK-NEXT: gpu.block_id x
  // CHECK-NEXT: }
  mgpu.launch %d grid (%n, %n, %n) block (%n, %n) stream %s {
    %i = gpu.block_id x
    mgpu.terminator
  }

  // The type of a stream may be given; it goes without saying.
  // CHECK-NEXT: mgpu.launch %[[D]] grid(%[[N]]) block(%[[N]]) stream %[[S]] {
  mgpu.launch %d grid(%n) block(%n) stream %s : !mgpu.stream {
  }

  // CHECK: mgpu.launch %[[D]] args(%[[A]], %[[N]] : memref<8xf32>, index) grid(%[[N]]) block(%[[N]]) attributes {mgpu.name = "first"} {
  mgpu.launch %d args(%a, %n : memref<8xf32>, index) grid(%n) block(%n) attributes {mgpu.name = "first"} {
  }

  // CHECK: mgpu.launch %[[D]] grid(%[[N]]) block(%[[N]]) {
  mgpu.launch %d args() grid(%n) block(%n) {
  }

  // Everything at once; values from above are used in the body.
  // CHECK: mgpu.launch %[[D]] args(%[[A]] : memref<8xf32>) grid(%[[N]], %[[N]]) block(%[[N]]) stream %[[S]] dynamic_shared_memory_size %[[BYTES]] workgroup(%[[W:.*]]: memref<32xf32, #gpu.address_space<workgroup>>, %[[X:.*]]: memref<1xi8, #gpu.address_space<workgroup>>) attributes {note} {
  // CHECK-NEXT: %[[V:.*]] = memref.load %[[A]][%[[N]]] : memref<8xf32>
  // CHECK-NEXT: memref.store %[[V]], %[[W]][%[[N]]]
  // CHECK-NEXT: }
  mgpu.launch %d args(%a : memref<8xf32>) grid(%n, %n) block(%n) stream %s dynamic_shared_memory_size %bytes workgroup(%w : !tile, %x : memref<1xi8, #gpu.address_space<workgroup>>) attributes {note} {
    %v = memref.load %a[%n] : memref<8xf32>
    memref.store %v, %w[%n] : !tile
  }

  // Ids and sizes as arguments, as gpu.launch has them.
  // CHECK: mgpu.launch %[[D]] grid(%[[N]]) block(%[[N]]) stream %[[S]] {
  // CHECK-NEXT: ^bb0(%[[BX:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[TX:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[W:.*]]: memref<32xf32, #gpu.address_space<workgroup>>):
  // CHECK-NEXT: memref.load %[[W]][%[[BX]]]
  // CHECK-NEXT: memref.load %[[W]][%[[TX]]]
  // CHECK-NEXT: }
  mgpu.launch %d grid (%n) block (%n) stream %s {
  ^bb0(%bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index, %w: !tile):
    %v = memref.load %w[%bx] : !tile
    %u = memref.load %w[%tx] : !tile
    mgpu.terminator
  }

  // What the terminator carries is kept.
  // CHECK: mgpu.launch %[[D]] grid(%[[N]]) block(%[[N]]) {
  // CHECK-NEXT: mgpu.terminator {note}
  mgpu.launch %d grid(%n) block(%n) {
    mgpu.terminator {note}
  }
  return
}
