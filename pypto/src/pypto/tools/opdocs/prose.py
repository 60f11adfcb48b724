"""What a person wrote for the operator pages: a title and an introduction per page, in both languages."""

from __future__ import annotations

import msgspec


class Prose(msgspec.Struct, frozen=True):
    """Title and introduction of one page; the page has the name of the module that defines its operators."""

    en_title: str
    zh_title: str
    en: str
    zh: str


PROSE: dict[str, Prose] = {
    "elementwise": Prose(
        "Elementwise arithmetic", "逐元素运算",
        "Arithmetic of two values, cell by cell. Tiles have the shape of both operands broadcast and the promoted "
        "element type; a Python number on the right takes the element type of the left side and selects the `s` form. "
        "Only the valid region of the result is defined: it is that of the first operand, except for division, which "
        "refuses operands of different regions.",
        "两个值之间的逐元素算术运算。结果的形状由两个操作数广播得到，元素类型取提升后的类型；右侧若为 Python 数值，"
        "则采用左侧的元素类型并选择带 `s` 后缀的形式。只有结果的有效区域有定义：除法要求两个操作数的有效区域相同，"
        "其余运算取第一个操作数的有效区域。",
    ),
    "unary": Prose(
        "Functions of one value", "一元函数",
        "Functions of one operand and conversions between element types. `high_precision` selects the exact "
        "instruction where the fast one is approximate. A cast rounds by its mode, saturates from floating point to "
        "integers and wraps between integers.",
        "单操作数函数以及元素类型转换。快速指令为近似实现时，可用 `high_precision` 选择精确指令。"
        "类型转换按指定模式舍入：浮点到整数饱和，整数之间回绕。",
    ),
    "bitwise": Prose(
        "Bitwise operators", "按位运算",
        "Logic and shifts of integer values. The exclusive or of tiles needs a scratch tile of the operand type; "
        "tensors leave the scratch to the compiler.",
        "整数的逻辑与移位运算。tile 的异或需要一个与操作数同类型的暂存 tile；tensor 的暂存由编译器提供。",
    ),
    "compare_select": Prose(
        "Comparison and selection", "比较与选择",
        "A comparison of tiles gives a packed mask: bit `c % 8` of byte `c // 8` stands for column `c`, rows are "
        "padded to 32 bytes. A comparison of tensors gives 0 and 1. Selection reads the packed mask.",
        "tile 的比较结果是压缩掩码：第 `c` 列对应第 `c // 8` 个字节的第 `c % 8` 位，每行补齐到 32 字节。"
        "tensor 的比较结果为 0 和 1。选择运算读取压缩掩码。",
    ),
    "reductions": Prose(
        "Reductions", "归约",
        "Sums, products, extrema and their positions along one axis, which stays with extent 1. A row reduction of a "
        "`[R, C]` tile gives `[R, 1]`, a column reduction `[1, C]`. Row reductions of tiles need a scratch tile.",
        "沿一个轴求和、求积、求极值及其位置，被归约的轴保留为长度 1。对 `[R, C]` 的 tile，按行归约得到 `[R, 1]`，"
        "按列归约得到 `[1, C]`。tile 的按行归约需要暂存 tile。",
    ),
    "expand": Prose(
        "Broadcasts", "广播",
        "A vector against a matrix: `row_expand_*` combines every row with one value of a `[R, 1]` column, "
        "`col_expand_*` every column with one value of a `[1, C]` row.",
        "向量与矩阵之间的运算：`row_expand_*` 用 `[R, 1]` 列中的一个值作用于整行，"
        "`col_expand_*` 用 `[1, C]` 行中的一个值作用于整列。",
    ),
    "creation": Prose(
        "Creation, sequences, random numbers", "创建、序列与随机数",
        "Values that do not come from an operand's cells: empty and constant tiles and tensors, counting sequences, "
        "triangles and reproducible random words.",
        "不来自操作数元素的值：空的或常数的 tile 与 tensor、等差序列、三角矩阵以及可复现的随机数。",
    ),
    "movement": Prose(
        "Loads, stores and moves", "加载、存储与搬运",
        "Data between global memory and on-chip spaces, and between those spaces. A load fills Vec or Mat, a move "
        "goes on to Left, Right or Bias, a store writes the valid region back, optionally accumulating.",
        "全局内存与片上存储之间、以及片上各空间之间的数据搬运。加载写入 Vec 或 Mat，再搬运到 Left、Right 或 Bias，"
        "存储将有效区域写回，并可选择原子累加。",
    ),
    "fillpad": Prose(
        "Padding", "填充",
        "Cells outside the valid region get the pad value (zero, the largest or the smallest value of the element "
        "type); the result is valid everywhere.",
        "将有效区域之外的元素写为填充值（零、该元素类型的最大值或最小值），结果处处有效。",
    ),
    "views": Prose(
        "Views", "视图",
        "The same cells under another shape, window or valid region. Slices of tensors copy nothing; rules refuse "
        "windows that provably leave the operand.",
        "以另一种形状、窗口或有效区域看待同一批元素。tensor 切片不复制数据；能够证明越界的窗口会被拒绝。",
    ),
    "reinterpret": Prose(
        "Reinterpretation", "重新解释",
        "The same bytes as another element type or layout.",
        "以另一种元素类型或布局解释同一批字节。",
    ),
    "matmul": Prose(
        "Matrix products", "矩阵乘",
        "Products on the cube core, accumulated in FP32 (INT32 for integers) in the Acc space. At tensor level the "
        "compiler chooses tiles, transposes by flag and converts the result.",
        "在 cube 核上执行的矩阵乘，在 Acc 空间以 FP32（整数为 INT32）累加。tensor 级别由编译器选择分块，"
        "按标志转置并转换结果类型。",
    ),
    "mx": Prose(
        "Block-scaled products", "分块缩放矩阵乘",
        "Products of FP8 or FP4 payloads with one E8M0 scale per 32 elements along K, and the quantisation that "
        "makes them. These exist on the 950 only.",
        "FP8 或 FP4 数据与每 32 个 K 方向元素一个 E8M0 缩放因子的矩阵乘，以及生成它们的量化运算。仅 950 支持。",
    ),
    "gather": Prose(
        "Gathers", "收集",
        "Cells picked by index, by byte offset, by a column pattern, by comparison or by page.",
        "按下标、字节偏移、列模式、比较条件或分页收集元素。",
    ),
    "scatter": Prose(
        "Scatters", "散布",
        "Cells or rows written at positions given by an index; of several writes to one cell one wins.",
        "按下标给出的位置写入元素或行；多次写入同一元素时只有其中一次生效。",
    ),
    "sort": Prose(
        "Sorting", "排序",
        "Blocks of 32 sorted in descending order as pairs of value and index, and merges of sorted runs of pairs.",
        "以（值，下标）对的形式对 32 个元素的块降序排序，以及有序段的归并。",
    ),
    "cross_core": Prose(
        "Cube and vector cores", "cube 核与 vector 核",
        "Pipes and lane regions between the cube core and its vector cores, reserved buffers, and the identity of a "
        "block. Most programs leave these to the compiler.",
        "cube 核与 vector 核之间的管道与 lane 区域、预留缓冲区以及块标识。多数程序由编译器自动生成这些算子。",
    ),
    "system": Prose(
        "Synchronisation, tasks and arrays", "同步、任务与数组",
        "Barriers and events inside a kernel, tasks and their dependencies in orchestration code, scalar stack "
        "arrays, and asynchronous prefetch.",
        "kernel 内的栅栏与事件、编排代码中的任务及其依赖、标量栈数组以及异步预取。",
    ),
    "distributed": Prose(
        "Ranks, windows and signals", "进程、窗口与信号",
        "Who and how many the ranks are, windows of memory that peers can reach, and signals between ranks.",
        "进程的标识与数量、对端可访问的内存窗口以及进程之间的信号。",
    ),
    "transfers": Prose(
        "Transfers between ranks", "进程间传输",
        "Loads from, stores to and bulk copies with the window of a peer.",
        "对对端窗口的加载、存储与批量拷贝。",
    ),
    "collectives": Prose(
        "Collectives", "集合通信",
        "Operations of all ranks of a domain on their windows.",
        "通信域内所有进程在各自窗口上的集合操作。",
    ),
    "internal": Prose(
        "Names without a user surface", "无用户接口的名称",
        "Allocations that passes create, and names that must resolve.",
        "由 pass 创建的分配，以及必须可解析的名称。",
    ),
}  # fmt: skip
