// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four devices hold two rows each of an 8 x 8 array and add up its columns from
// the top. No device has a whole column, so the rows become columns and, once
// these are added up, rows again.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

func.func @main(%x: memref<8x8xf32>,
                %prefix: memref<8x8xf32> {mgpu.role = "output"},
                %before: memref<4x8xf32> {mgpu.role = "output"},
                %total: memref<2x8xf32> {mgpu.role = "output"}) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %d2 = mgpu.get_device %c2 : !mgpu.device
  %d3 = mgpu.get_device %c3 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  %s2 = mgpu.create_stream %d2 : !mgpu.device -> !mgpu.stream
  %s3 = mgpu.create_stream %d3 : !mgpu.device -> !mgpu.stream
  %comm = mgpu.create_communicator %d0, %d1, %d2, %d3 : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> !mgpu.communicator
  %rows0 = mgpu.alloc %d0 : !mgpu.device -> memref<2x8xf32>
  %rows1 = mgpu.alloc %d1 : !mgpu.device -> memref<2x8xf32>
  %rows2 = mgpu.alloc %d2 : !mgpu.device -> memref<2x8xf32>
  %rows3 = mgpu.alloc %d3 : !mgpu.device -> memref<2x8xf32>
  %columns0 = mgpu.alloc %d0 : !mgpu.device -> memref<8x2xf32>
  %columns1 = mgpu.alloc %d1 : !mgpu.device -> memref<8x2xf32>
  %columns2 = mgpu.alloc %d2 : !mgpu.device -> memref<8x2xf32>
  %columns3 = mgpu.alloc %d3 : !mgpu.device -> memref<8x2xf32>
  %sums0 = mgpu.alloc %d0 : !mgpu.device -> memref<2x8xf32>
  %sums1 = mgpu.alloc %d1 : !mgpu.device -> memref<2x8xf32>
  %sums2 = mgpu.alloc %d2 : !mgpu.device -> memref<2x8xf32>
  %sums3 = mgpu.alloc %d3 : !mgpu.device -> memref<2x8xf32>
  %edge0 = mgpu.alloc %d0 : !mgpu.device -> memref<1x8xf32>
  %edge1 = mgpu.alloc %d1 : !mgpu.device -> memref<1x8xf32>
  %edge2 = mgpu.alloc %d2 : !mgpu.device -> memref<1x8xf32>
  %edge3 = mgpu.alloc %d3 : !mgpu.device -> memref<1x8xf32>
  %part0 = mgpu.alloc %d0 : !mgpu.device -> memref<2x2xf32>
  %part1 = mgpu.alloc %d1 : !mgpu.device -> memref<2x2xf32>
  %part2 = mgpu.alloc %d2 : !mgpu.device -> memref<2x2xf32>
  %part3 = mgpu.alloc %d3 : !mgpu.device -> memref<2x2xf32>
  %all0 = mgpu.alloc %d0 : !mgpu.device -> memref<2x8xf32>
  %all1 = mgpu.alloc %d1 : !mgpu.device -> memref<2x8xf32>
  %all2 = mgpu.alloc %d2 : !mgpu.device -> memref<2x8xf32>
  %all3 = mgpu.alloc %d3 : !mgpu.device -> memref<2x8xf32>

  mgpu.scatter %x, %host, [%rows0, %rows1, %rows2, %rows3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<8x8xf32>, !mgpu.device, [memref<2x8xf32>, memref<2x8xf32>, memref<2x8xf32>, memref<2x8xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]

  // Rows to columns: each device gives away columns and stacks the rows it gets.
  mgpu.all_to_all %rows0, %columns0, %comm stream %s0 : !mgpu.stream splitAxis = 1 concatAxis = 0 : memref<2x8xf32>, memref<8x2xf32>, !mgpu.communicator
  mgpu.all_to_all %rows1, %columns1, %comm stream %s1 : !mgpu.stream splitAxis = 1 concatAxis = 0 : memref<2x8xf32>, memref<8x2xf32>, !mgpu.communicator
  mgpu.all_to_all %rows2, %columns2, %comm stream %s2 : !mgpu.stream splitAxis = 1 concatAxis = 0 : memref<2x8xf32>, memref<8x2xf32>, !mgpu.communicator
  mgpu.all_to_all %rows3, %columns3, %comm stream %s3 : !mgpu.stream splitAxis = 1 concatAxis = 0 : memref<2x8xf32>, memref<8x2xf32>, !mgpu.communicator

  mgpu.launch %d0 grid(%c1) block(%c2) stream %s0 {
    %column = gpu.thread_id x
    scf.for %row = %c1 to %c8 step %c1 {
      %above = arith.subi %row, %c1 : index
      %a = memref.load %columns0[%above, %column] : memref<8x2xf32>
      %b = memref.load %columns0[%row, %column] : memref<8x2xf32>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %columns0[%row, %column] : memref<8x2xf32>
    }
  }
  mgpu.launch %d1 grid(%c1) block(%c2) stream %s1 {
    %column = gpu.thread_id x
    scf.for %row = %c1 to %c8 step %c1 {
      %above = arith.subi %row, %c1 : index
      %a = memref.load %columns1[%above, %column] : memref<8x2xf32>
      %b = memref.load %columns1[%row, %column] : memref<8x2xf32>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %columns1[%row, %column] : memref<8x2xf32>
    }
  }
  mgpu.launch %d2 grid(%c1) block(%c2) stream %s2 {
    %column = gpu.thread_id x
    scf.for %row = %c1 to %c8 step %c1 {
      %above = arith.subi %row, %c1 : index
      %a = memref.load %columns2[%above, %column] : memref<8x2xf32>
      %b = memref.load %columns2[%row, %column] : memref<8x2xf32>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %columns2[%row, %column] : memref<8x2xf32>
    }
  }
  mgpu.launch %d3 grid(%c1) block(%c2) stream %s3 {
    %column = gpu.thread_id x
    scf.for %row = %c1 to %c8 step %c1 {
      %above = arith.subi %row, %c1 : index
      %a = memref.load %columns3[%above, %column] : memref<8x2xf32>
      %b = memref.load %columns3[%row, %column] : memref<8x2xf32>
      %sum = arith.addf %a, %b : f32
      memref.store %sum, %columns3[%row, %column] : memref<8x2xf32>
    }
  }

  // And back.
  mgpu.all_to_all %columns0, %sums0, %comm stream %s0 : !mgpu.stream splitAxis = 0 concatAxis = 1 : memref<8x2xf32>, memref<2x8xf32>, !mgpu.communicator
  mgpu.all_to_all %columns1, %sums1, %comm stream %s1 : !mgpu.stream splitAxis = 0 concatAxis = 1 : memref<8x2xf32>, memref<2x8xf32>, !mgpu.communicator
  mgpu.all_to_all %columns2, %sums2, %comm stream %s2 : !mgpu.stream splitAxis = 0 concatAxis = 1 : memref<8x2xf32>, memref<2x8xf32>, !mgpu.communicator
  mgpu.all_to_all %columns3, %sums3, %comm stream %s3 : !mgpu.stream splitAxis = 0 concatAxis = 1 : memref<8x2xf32>, memref<2x8xf32>, !mgpu.communicator

  // The last row goes to the next device. The first device has none before it
  // and receives zeros.
  %last0 = memref.subview %sums0[1, 0] [1, 8] [1, 1] : memref<2x8xf32> to memref<1x8xf32, strided<[8, 1], offset: 8>>
  %last1 = memref.subview %sums1[1, 0] [1, 8] [1, 1] : memref<2x8xf32> to memref<1x8xf32, strided<[8, 1], offset: 8>>
  %last2 = memref.subview %sums2[1, 0] [1, 8] [1, 1] : memref<2x8xf32> to memref<1x8xf32, strided<[8, 1], offset: 8>>
  %last3 = memref.subview %sums3[1, 0] [1, 8] [1, 1] : memref<2x8xf32> to memref<1x8xf32, strided<[8, 1], offset: 8>>
  mgpu.permute %last0, %edge0, %comm stream %s0 : !mgpu.stream pairs = [[0, 1], [1, 2], [2, 3]] : memref<1x8xf32, strided<[8, 1], offset: 8>>, memref<1x8xf32>, !mgpu.communicator
  mgpu.permute %last1, %edge1, %comm stream %s1 : !mgpu.stream pairs = [[0, 1], [1, 2], [2, 3]] : memref<1x8xf32, strided<[8, 1], offset: 8>>, memref<1x8xf32>, !mgpu.communicator
  mgpu.permute %last2, %edge2, %comm stream %s2 : !mgpu.stream pairs = [[0, 1], [1, 2], [2, 3]] : memref<1x8xf32, strided<[8, 1], offset: 8>>, memref<1x8xf32>, !mgpu.communicator
  mgpu.permute %last3, %edge3, %comm stream %s3 : !mgpu.stream pairs = [[0, 1], [1, 2], [2, 3]] : memref<1x8xf32, strided<[8, 1], offset: 8>>, memref<1x8xf32>, !mgpu.communicator

  // All devices' rows are added; each keeps two columns of the sum, and then all
  // columns stand side by side on every device.
  mgpu.reduce_scatter %rows0, %part0, %comm, sum stream %s0 : !mgpu.stream axis = 1 : memref<2x8xf32>, memref<2x2xf32>, !mgpu.communicator
  mgpu.reduce_scatter %rows1, %part1, %comm, sum stream %s1 : !mgpu.stream axis = 1 : memref<2x8xf32>, memref<2x2xf32>, !mgpu.communicator
  mgpu.reduce_scatter %rows2, %part2, %comm, sum stream %s2 : !mgpu.stream axis = 1 : memref<2x8xf32>, memref<2x2xf32>, !mgpu.communicator
  mgpu.reduce_scatter %rows3, %part3, %comm, sum stream %s3 : !mgpu.stream axis = 1 : memref<2x8xf32>, memref<2x2xf32>, !mgpu.communicator
  mgpu.all_gather %part0, %all0, %comm stream %s0 : !mgpu.stream axis = 1 : memref<2x2xf32>, memref<2x8xf32>, !mgpu.communicator
  mgpu.all_gather %part1, %all1, %comm stream %s1 : !mgpu.stream axis = 1 : memref<2x2xf32>, memref<2x8xf32>, !mgpu.communicator
  mgpu.all_gather %part2, %all2, %comm stream %s2 : !mgpu.stream axis = 1 : memref<2x2xf32>, memref<2x8xf32>, !mgpu.communicator
  mgpu.all_gather %part3, %all3, %comm stream %s3 : !mgpu.stream axis = 1 : memref<2x2xf32>, memref<2x8xf32>, !mgpu.communicator

  mgpu.gather %prefix, %host, [%sums0, %sums1, %sums2, %sums3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<8x8xf32>, !mgpu.device, [memref<2x8xf32>, memref<2x8xf32>, memref<2x8xf32>, memref<2x8xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.gather %before, %host, [%edge0, %edge1, %edge2, %edge3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<4x8xf32>, !mgpu.device, [memref<1x8xf32>, memref<1x8xf32>, memref<1x8xf32>, memref<1x8xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.memcpy %total, %all3, %host, %d3 stream %s3 : !mgpu.stream : memref<2x8xf32>, memref<2x8xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.sync_stream %s2 : !mgpu.stream
  mgpu.sync_stream %s3 : !mgpu.stream
  return
}
