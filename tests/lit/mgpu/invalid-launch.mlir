// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

func.func @no_grid(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op expected 1 to 3 sizes of the grid, got 0 [launch_c1]}}
  mgpu.launch %d grid() block(%n) {
  }
  return
}

// -----

func.func @four_sizes(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op expected 1 to 3 sizes of the block, got 4 [launch_c1]}}
  mgpu.launch %d grid(%n) block(%n, %n, %n, %n) {
  }
  return
}

// -----

func.func @empty_grid(%d: !mgpu.device, %n: index) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{'mgpu.launch' op sizes of the grid must be at least 1, got 0 [launch_c2]}}
  mgpu.launch %d grid(%n, %c0) block(%n) {
  }
  return
}

// -----

func.func @empty_block(%d: !mgpu.device, %n: index) {
  %c = arith.constant -3 : index
  // expected-error @below {{'mgpu.launch' op sizes of the block must be at least 1, got -3 [launch_c2]}}
  mgpu.launch %d grid(%n) block(%c) {
  }
  return
}

// -----

func.func @host_launch(%n: index) {
  %c-1 = arith.constant -1 : index
  %h = mgpu.get_device %c-1 : !mgpu.device
  // expected-error @below {{'mgpu.launch' op cannot launch a kernel on the host [launch_c3]}}
  mgpu.launch %h grid(%n) block(%n) {
  }
  return
}

// -----

func.func @negative_shared(%d: !mgpu.device, %n: index) {
  %c = arith.constant -8 : i32
  // expected-error @below {{'mgpu.launch' op dynamic shared memory size must not be negative, got -8 [launch_c4]}}
  mgpu.launch %d grid(%n) block(%n) dynamic_shared_memory_size %c {
  }
  return
}

// -----

func.func @workgroup_space(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op workgroup buffers must be memrefs of static shape and identity layout in the workgroup address space, got 'memref<8xf32>' [launch_c6]}}
  mgpu.launch %d grid(%n) block(%n) workgroup(%w : memref<8xf32>) {
  }
  return
}

// -----

func.func @workgroup_dynamic(%d: !mgpu.device, %n: index) {
  // expected-error @below {{got 'memref<?xf32, #gpu.address_space<workgroup>>' [launch_c6]}}
  mgpu.launch %d grid(%n) block(%n) workgroup(%w : memref<?xf32, #gpu.address_space<workgroup>>) {
  }
  return
}

// -----

func.func @four_ids(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op takes 0, 3, 6, 9 or 12 index arguments in its body (block ids, thread ids, grid sizes, block sizes), got 4 [launch_c5]}}
  mgpu.launch %d grid(%n) block(%n) {
  ^bb0(%a: index, %b: index, %c: index, %e: index):
  }
  return
}

// -----

func.func @two_blocks(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op expects region #0 to have 0 or 1 blocks}}
  mgpu.launch %d grid(%n) block(%n) {
    cf.br ^bb1
  ^bb1:
    mgpu.terminator
  }
  return
}

// -----

func.func @wrong_terminator(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op expects regions to end with 'mgpu.terminator', found 'llvm.unreachable'}}
  // expected-note @below {{in custom textual format, the absence of terminator implies 'mgpu.terminator'}}
  "mgpu.launch"(%d, %n, %n) <{operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>}> ({
    "llvm.unreachable"() : () -> ()
  }) : (!mgpu.device, index, index) -> ()
  return
}

// -----

func.func @terminator_alone() {
  // expected-error @below {{'mgpu.terminator' op expects parent op 'mgpu.launch'}}
  mgpu.terminator
}

// -----

func.func @stream_type(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op operand #3 must be stream handle, but got 'index'}}
  mgpu.launch %d grid(%n) block(%n) stream %n : index {
  }
  return
}

// -----

func.func @not_an_index(%d: !mgpu.device, %n: i32) {
  // expected-note @above {{prior use here}}
  // expected-error @below {{use of value '%n' expects different type than prior uses: 'index' vs 'i32'}}
  mgpu.launch %d grid(%n) block(%n) {
  }
  return
}

// -----

func.func @no_body(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op region #0 ('body') failed to verify constraint: region with 1 blocks}}
  "mgpu.launch"(%d, %n, %n) <{operandSegmentSizes = array<i32: 1, 0, 1, 1, 0, 0>}> ({
  }) : (!mgpu.device, index, index) -> ()
  return
}

// -----

func.func @wrong_segments(%d: !mgpu.device, %n: index) {
  // expected-error @below {{'mgpu.launch' op operand count (3) does not match with the total size (5) specified in attribute 'operandSegmentSizes'}}
  "mgpu.launch"(%d, %n, %n) <{operandSegmentSizes = array<i32: 1, 0, 2, 2, 0, 0>}> ({
    "mgpu.terminator"() : () -> ()
  }) : (!mgpu.device, index, index) -> ()
  return
}
