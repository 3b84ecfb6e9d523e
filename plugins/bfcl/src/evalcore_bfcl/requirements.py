# ruff: noqa: E501 - a path and its digest stay on one line
"""What the toolkits' environments hold, as plain data: pins, hashes, a range of Pythons, digests of upstream's files.

Everything that upstream imports and nothing here calls is left out, and stood in for by `native.py`. One toolkit serves
single-turn and multi-turn categories, from pure Python wheels, for which one hash each serves every platform; the other
adds what the memory and web-search categories compute with. Upstream pins numpy 1.26.4, which has no wheel for Python
3.13: all that is computed with it is BM25, elementwise, in the same floats.
"""

from typing import TypeAlias

PYTHON = ">=3.10,<3.14"
"""Tested on 3.10, 3.11, 3.12 and 3.13: the same verdicts, byte for byte."""

Pins: TypeAlias = tuple[tuple[str, str, tuple[str, ...]], ...]

REQUIREMENTS: Pins = (
    ("bfcl-eval", "2026.3.23", ("sha256:3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",)),
    ("filelock", "3.20.0", ("sha256:339b4732ffda5cd79b13f4e2711a31b0365ce445d95d243bb996273d072546a2",)),
    ("mpmath", "1.3.0", ("sha256:a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c",)),
)
"""Distribution, version, and the hashes of every acceptable wheel; to be installed without their dependencies."""

NUMPY = (
    "sha256:b412caa66f72040e6d268491a59f2c43bf03eb6c96dd8f0307829feb7fa2b6fb",
    "sha256:8e41fd67c52b86603a91c1a505ebaef50b3314de0213461c7a6e99c9a3beff90",
    "sha256:37e990a01ae6ec7fe7fa1c26c55ecb672dd98b19c3d0e1d1f326fa13cb38d163",
    "sha256:5a6429d4be8ca66d889b7cf70f536a397dc45ba6faeb5f8c5427935d9592e9cf",
    "sha256:efd28d4e9cd7d7a8d39074a4d44c63eda73401580c5c76acda2ce969e0a38e83",
    "sha256:fc7b73d02efb0e18c000e9ad8b83480dfcd5dfd11065997ed4c6747470ae8915",
    "sha256:74d4531beb257d2c3f4b261bfb0fc09e0f9ebb8842d82a7b4209415896adc680",
    "sha256:8fc377d995680230e83241d8a96def29f204b5782f371c532579b4f20607a289",
    "sha256:f9f1adb22318e121c5c69a09142811a201ef17ab257a1e66ca3025065b7f53ae",
    "sha256:c820a93b0255bc360f53eca31a0e676fd1101f673dda8da93454a12e23fc5f7a",
    "sha256:3d70692235e759f260c3d837193090014aebdf026dfd167834bcba43e30c2a42",
    "sha256:481b49095335f8eed42e39e8041327c05b0f6f4780488f61286ed3c01368d491",
    "sha256:b64d8d4d17135e00c8e346e0a738deb17e754230d7e0810ac5012750bbd85a5a",
    "sha256:ba10f8411898fc418a521833e014a77d3ca01c15b0c6cdcce6a0d2897e6dbbdf",
    "sha256:bd48227a919f1bafbdda0583705e547892342c26fb127219d60a5c36882609d1",
    "sha256:9551a499bf125c1d4f9e250377c1ee2eddd02e01eac6644c080162c0c51778ab",
    "sha256:41c5a21f4a04fa86436124d388f6ed60a9343a6f767fced1a8a71c3fbca038ff",
    "sha256:de749064336d37e340f640b05f24e9e3dd678c57318c7289d222a8a2f543e90c",
    "sha256:894b3a42502226a1cac872f840030665f33326fc3dac8e57c607905773cdcde3",
    "sha256:71594f7c51a18e728451bb50cc60a3ce4e6538822731b2933209a1f3614e9282",
    "sha256:f2618db89be1b4e05f7a1a847a9c1c0abd63e63a1607d892dd54668dd92faf87",
    "sha256:fd83c01228a688733f1ded5201c678f0c53ecc1006ffbc404db9f7a899ac6249",
    "sha256:37c0ca431f82cd5fa716eca9506aefcabc247fb27ba69c5062a6d3ade8cf8f49",
    "sha256:fe27749d33bb772c80dcd84ae7e8df2adc920ae8297400dabec45f0dedb3f6de",
    "sha256:0811bb762109d9708cca4d0b13c4f67146e3c3b7cf8d34018c722adb2d957c84",
    "sha256:287cc3162b6f01463ccd86be154f284d0893d2b3ed7292439ea97eafa8170e0b",
    "sha256:f1372f041402e37e5e633e586f62aa53de2eac8d98cbfb822806ce4bbefcb74d",
    "sha256:55a4d33fa519660d69614a9fad433be87e5252f4b03850642f88993f7b2ca566",
    "sha256:f92729c95468a2f4f15e9bb94c432a9229d0d50de67304399627a943201baa2f",
    "sha256:1bc23a79bfabc5d056d106f9befb8d50c31ced2fbc70eedb8155aec74a45798f",
    "sha256:e3143e4451880bed956e706a3220b4e5cf6172ef05fcc397f6f36a550b1dd868",
    "sha256:b4f13750ce79751586ae2eb824ba7e1e8dba64784086c98cdbbcc6a42112ce0d",
)
"""CPython 3.10 to 3.13 on Linux (glibc and musl) and macOS, x86-64 and ARM."""

AGENTIC: Pins = (
    *REQUIREMENTS,
    ("beautifulsoup4", "4.13.4", ("sha256:9bbbb14bfde9d79f38b8cd5f8c7c85f4b8f2523190ebed90e950a8dea4cb1c4b",)),
    ("html2text", "2025.4.15", ("sha256:00569167ffdab3d7767a4cdf589b7f57e777a5ed28d12907d8c58769ec734acc",)),
    ("numpy", "2.2.6", NUMPY),
    ("rank_bm25", "0.2.2", ("sha256:7bd4a95571adadfc271746fa146a4bcfd89c0cf731e49c3d1ad863290adbe8ae",)),
    ("soupsieve", "2.7", ("sha256:6e60cc5c1ffaf1cebcc12e8188320b72071e922c2e897f737cadce79ad5d30c4",)),
    ("typing_extensions", "4.13.2", ("sha256:a439e7c04b49fec3e5d3e2beaa21755cadbbdc391694e28ccdd36ca4a1408f8c",)),
)
"""The same with what the memory and web-search categories compute with."""

IMPORTS = ("bfcl_eval", "filelock", "mpmath")
AGENTIC_IMPORTS = (*IMPORTS, "bs4", "html2text", "numpy", "rank_bm25")
"""What must import in a finished environment. Most of upstream imports only from within the worker."""

FILES = {
    "bfcl_eval/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/constants/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/constants/category_mapping.py": "ef31291f17c1ac0504b246345bd56e6bac44fec4239741e158f9fcf2c819cb35",
    "bfcl_eval/constants/column_headers.py": "6f65c8b5ddc903c4c4400bb09bfd5d48cf78c9d9b818f687888495f7396138d4",
    "bfcl_eval/constants/default_prompts.py": "4cc033be99ae2b10bbde30e7751ddcac5468cb45841b6dc7b3a97b92adf38205",
    "bfcl_eval/constants/enums.py": "2182becfa2a1d071ee1db30db593b4758c6bf866aa12d2d4b8daf09175ea518a",
    "bfcl_eval/constants/eval_config.py": "9048643628b150d53d59424365f8ca869b8aa39b503efe7a2d26b7ec93b4cb50",
    "bfcl_eval/constants/executable_backend_config.py": "1214b960de5d86840e379007c70bc9570203e0b5a926ea740ff00c605a531e57",
    "bfcl_eval/constants/type_mappings.py": "1702fb67afbe2c492608e58e2b7d02e46381f50166b47f3c952f76e34c7cd3bd",
    "bfcl_eval/data/BFCL_v4_irrelevance.json": "2b6ed4c2e992cdcf5f1678a701851f944bef7550ee026ed1ddb89efed5be01a6",
    "bfcl_eval/data/BFCL_v4_live_irrelevance.json": "6559fda2beaceb609a2cd2e504c65b4a56cb448e1ef88fddfd199e163d163349",
    "bfcl_eval/data/BFCL_v4_live_multiple.json": "fd8ccfad4d911420d0e3341dbe2fff77d1d341da934248b9bb2bda24ab3a10c8",
    "bfcl_eval/data/BFCL_v4_live_parallel.json": "6c26e9fdc3350cf596e6d1ea9c179cbff834761bccf562f4141ed29a839ca421",
    "bfcl_eval/data/BFCL_v4_live_parallel_multiple.json": "21d4b9319c1faac431e22757b367ea28917fe467364c3a4b17f16ec06d4f6e79",
    "bfcl_eval/data/BFCL_v4_live_relevance.json": "e03f9e241657a137cba48a89ee12f47bf3fcb7e4f6274263e9c699a0c974203a",
    "bfcl_eval/data/BFCL_v4_live_simple.json": "1af2ac87dca47556db7b7e37e51e28b459a38b594e3c7b3c792b4903598ca0c4",
    "bfcl_eval/data/BFCL_v4_memory.json": "40fc21d4528af53c6b44204def89e81515d0101654229e2c2e82bbf5f047b14f",
    "bfcl_eval/data/BFCL_v4_multi_turn_base.json": "1a21a995d06fd6f20ba55de7bced30ef953ec35e998f502ec2ecf4d66ef1c43a",
    "bfcl_eval/data/BFCL_v4_multi_turn_long_context.json": "78c3268c5cc8e97c0f4ec6c811b3b9a2bba14323b1830b7a874b06d822749324",
    "bfcl_eval/data/BFCL_v4_multi_turn_miss_func.json": "87d28ce10e37d864b72de85d5732eef2a867b241d6c1c99b4ae682c9e3ea921c",
    "bfcl_eval/data/BFCL_v4_multi_turn_miss_param.json": "f0c66dda3795f5f53e3e1c0cc8ba0246b6761c8f58bdba8317203bf451ab8838",
    "bfcl_eval/data/BFCL_v4_multiple.json": "aef168155ebd74b7ac2401198b201343bc7d16d7a3d7e0d4e6d8ee82c6969b2a",
    "bfcl_eval/data/BFCL_v4_parallel.json": "19f51a82eff42e5d62541aa500115a056eb78f437c2ba1f10415fd7c8e5dda84",
    "bfcl_eval/data/BFCL_v4_parallel_multiple.json": "8863ea8433239f55c5f016154cf0830853c89f693c6ea270396a2fa121960579",
    "bfcl_eval/data/BFCL_v4_simple_java.json": "13d2303a125b08754f0e41995b9273b5005fa8ed8ebfaa24ef53b4d83c4b5c6e",
    "bfcl_eval/data/BFCL_v4_simple_javascript.json": "329e67fedf79a6243d93dbda4b388d12bd2d31f1f2163d92cb6ef676d1764f44",
    "bfcl_eval/data/BFCL_v4_simple_python.json": "82dd63ba502eb2520c6b5d1d9a5c4b590e03ff261565175561f6228a367d1991",
    "bfcl_eval/data/BFCL_v4_web_search.json": "6fc41d96d003dc849028966a782923560d2fc127ed2088aa967f06daaafa4268",
    "bfcl_eval/data/memory_prereq_conversation/memory_customer.json": "806ac91e558e3d933e526ecc0c286e417657f76a3c9b9073eef830a532eb4eb2",
    "bfcl_eval/data/memory_prereq_conversation/memory_finance.json": "3cef1f235667f479b8f45c7082247454b2129ee88fe4fbcdbc53fd2cdf495b75",
    "bfcl_eval/data/memory_prereq_conversation/memory_healthcare.json": "56e7bd7b2e7c01efe81f1e0be85149ea3886bb2d9cb59f90e9d9e27b91f4604d",
    "bfcl_eval/data/memory_prereq_conversation/memory_notetaker.json": "07f3239ef2e9e1421901f05d3c8192469fa129324e124a47bcb35ff9c7785c91",
    "bfcl_eval/data/memory_prereq_conversation/memory_student.json": "e2d6c32e9e2671c61f682e845dcdafd9eee7c9f3e2d5da1615d3afd2aeecf2f0",
    "bfcl_eval/data/multi_turn_func_doc/gorilla_file_system.json": "c4c1b741c71e2a17c97a5dc9c4a91d89978c4eaece56494d14272d5df6c650e9",
    "bfcl_eval/data/multi_turn_func_doc/math_api.json": "83fa31708c89442bdcf12ac4dfbe3be8663ec9183a1b1524a9fda98164bc7e0b",
    "bfcl_eval/data/multi_turn_func_doc/memory_kv.json": "96480cd9cbd3d4a34cd8f78879bc6622731768a26e080f7a34782e36e3402287",
    "bfcl_eval/data/multi_turn_func_doc/memory_rec_sum.json": "4ceff946df00983c7f0b95d1b70ae402247f3312fb898bac9ecfa1de52f5a783",
    "bfcl_eval/data/multi_turn_func_doc/memory_vector.json": "917908ca99fdd01e203274b7ec6eb2347fa91d57f3c6341e20945cc9c9d746cf",
    "bfcl_eval/data/multi_turn_func_doc/message_api.json": "4d58ea933a5d2b280d7a52366617fb47fecd333d7b0e08e724db6fa12fb5f847",
    "bfcl_eval/data/multi_turn_func_doc/posting_api.json": "87f9fc404a06e4107d7c366f1399c596440e84c16cb119faf374b2f532d86e8b",
    "bfcl_eval/data/multi_turn_func_doc/ticket_api.json": "31324e0380782664fe82ba05bd23517808ad55692b45a5fe7c3d4d395fe4f0f8",
    "bfcl_eval/data/multi_turn_func_doc/trading_bot.json": "1a7933fd8f0cb8fbec38aeae05cb8c24132747cad4904fe1c13ac3d01fc22c2d",
    "bfcl_eval/data/multi_turn_func_doc/travel_booking.json": "f17b950c13adddf41d0848077df58788252e4c2e7cad5cfa71c8c4bf04f57b26",
    "bfcl_eval/data/multi_turn_func_doc/vehicle_control.json": "0c8a66292844874ef7b168f343bc394d8615d2d9e1f4387999a9ee23011eac78",
    "bfcl_eval/data/multi_turn_func_doc/web_search.json": "61fcee411e35f7ff67415e18cd67276615cf06e1c8841a683d2d997dbb46eac5",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_multiple.json": "97e90d59c5bd76c55a2920ce93e5566e9046307d3f558578f085f9d3a56c3084",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_parallel.json": "8a9f189ff0e832ebbbbdade1fd95a7dbcc67406e9177df3f0aad76f59ab00350",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_parallel_multiple.json": "f5b5f360556c5feb51db46fb9f56ee4b304f4b45b161599bbb14161c98a2873f",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_simple.json": "fec9cfa9744a936f9126981e85a2023da1e63e273eafebc81923a1162fad70ce",
    "bfcl_eval/data/possible_answer/BFCL_v4_memory.json": "2355cf8d842f94af6bcb7bfa6ad2f9e472bc6d825d6ecd45702cfc41e27d7e5d",
    "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_base.json": "1fee67823b317571649177dd89d63969feaae4e810cc7448ee55ba797fb7c8fc",
    "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_long_context.json": "e82aa0e839c39d23c64a05834f7ae024d7c9738ec21738ecee78dc876e3d0d18",
    "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_miss_func.json": "69e679b806d1c871b05393a4b95583bb973248e5b8d96c2d7f4ca05e29fc32e6",
    "bfcl_eval/data/possible_answer/BFCL_v4_multi_turn_miss_param.json": "59c442901779e2c31c33abcd566d032e03736e5ad8069de2fe05489873046ecf",
    "bfcl_eval/data/possible_answer/BFCL_v4_multiple.json": "244e00ce9395df948bcafc7bee64e8f9c87ef70887587d83cae45b13699f3047",
    "bfcl_eval/data/possible_answer/BFCL_v4_parallel.json": "8a6aa19c1adddc6a5a2f7e40f9dbf30cc7e95815e7b830c90589ab318229e0f0",
    "bfcl_eval/data/possible_answer/BFCL_v4_parallel_multiple.json": "5ebf24f458c1f16300c05505d83d6f0a1b68b79be273a033febd0d4f840507e3",
    "bfcl_eval/data/possible_answer/BFCL_v4_simple_java.json": "78f25616084044fa05bbfcee68e03f6ececb222bdd5cb3b7783a675fb3366e35",
    "bfcl_eval/data/possible_answer/BFCL_v4_simple_javascript.json": "e2f9f2e51d88e0c8056ffbf1a3dd3d02eb032532d2b5d98c9cc9003385bdd56b",
    "bfcl_eval/data/possible_answer/BFCL_v4_simple_python.json": "90cd5bc653690ee8e459b5b3f3fc9458606f7f3fcbf795bb51b7dc581f8c86dc",
    "bfcl_eval/data/possible_answer/BFCL_v4_web_search.json": "771cab45fdad5744563456801d4623a42c5a358f10514b9b9105d2f6052b4999",
    "bfcl_eval/eval_checker/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/eval_checker/agentic_eval/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/eval_checker/agentic_eval/agentic_checker.py": "b9d008cc0afccc006471f315444923119150e66df56114b1ea2be15f52dea1b6",
    "bfcl_eval/eval_checker/ast_eval/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/eval_checker/ast_eval/ast_checker.py": "2aae7a68461a8f76c0be3894c8901b66b56967a1989d3ab066051e3fb97f1538",
    "bfcl_eval/eval_checker/ast_eval/type_convertor/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/eval_checker/ast_eval/type_convertor/java_type_converter.py": "2fd4f4b0443b3dd974a1723bb4e45c086d7b352631062da7807ad1ad40706604",
    "bfcl_eval/eval_checker/ast_eval/type_convertor/js_type_converter.py": "a114e9ff75c025cb52787ac33d6c2fbaa390905c6125a2b3c6afebab232bb5e4",
    "bfcl_eval/eval_checker/eval_runner.py": "b1033684908819ccb312d4d0e2c563359d69247412f00206013b2292b0e3ce81",
    "bfcl_eval/eval_checker/eval_runner_helper.py": "7c756592af53eb54733989aa03a3fa87854f1c20dd566f3f10a770e17d25a9d7",
    "bfcl_eval/eval_checker/multi_turn_eval/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/gorilla_file_system.py": "84173750930b09aaa31b90547c9bd79ce75714682608b35e78a9c1ea259faf2b",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/long_context.py": "5c9a5710115609c779e5b2ccb43f6ad58271ed96f2ea7a797edb0d65c385aa38",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/math_api.py": "abde32cc25e71b2ff3acf4d028a3c005b98409c174aba4abddbfe1c018afb9a8",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/memory_api_metaclass.py": "5b924c2482797fa2055c4c606788db517470d0a65d1a64c97f21bceb5f820611",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/memory_kv.py": "7be11ccae7741e07fcd7a2fc6664cad556357a047453db68db9e11bfec6c0ca7",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/memory_rec_sum.py": "e5a08f4183ab2c14a330eb3db1aca5e13533e0ffe70ce1c424851944295b898c",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/memory_vector.py": "489df326a8fc6e19270d6a349c8c3434f4bdcb360050d7ac17596eeb4da03a54",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/message_api.py": "cf72af1635654147af17df1891a7fb354549e78a61930139f741a31f4be21121",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/posting_api.py": "32b887aaa37c7167ad9c84ddfa7bbb855c75d3c1edab19ba868aba29acc4cfa1",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/ticket_api.py": "6a9375aa6425410c07a151aef27f3e44e9ed1023bb5cc5c25f14f4a9b3c99116",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/trading_bot.py": "cc2e3949035b561e9d07418b081561aa07b211672200e2e511aec074bf79fcb2",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/travel_booking.py": "e698e22adccf0d6d41b297f2d5e44faebd828cef4752df6a4ffb1570c0c35296",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/vehicle_control.py": "f5f7a2f28968728927a98ae12ec68a32d70781cfb74c2d7b14801772362b12d1",
    "bfcl_eval/eval_checker/multi_turn_eval/func_source_code/web_search.py": "d39007b676640c560a65bcc0c4a9cff677a6a8da200a951d6d30bf7cac00037d",
    "bfcl_eval/eval_checker/multi_turn_eval/multi_turn_checker.py": "b3b787515eda3bf0e365e39634a8fc7f831763f010f716d35d86f96fd5aab1b5",
    "bfcl_eval/eval_checker/multi_turn_eval/multi_turn_utils.py": "9fdbd779ec715959c310445b54b431e91abaa8b45a302abb6fd8db8d61b62ba2",
    "bfcl_eval/model_handler/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/model_handler/api_inference/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/model_handler/api_inference/claude.py": "b72a0a329f9a37658f7431801a2ebee53b20893f4040142b935cb40291f6ebef",
    "bfcl_eval/model_handler/base_handler.py": "5ac4bdd139a7fe15cb9ee6cd75735ec27f9b25478ff3d82d2ea5208d832969e4",
    "bfcl_eval/model_handler/parser/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "bfcl_eval/model_handler/parser/java_parser.py": "78aa38dcfae655b5e3a982d0aaadf72aad0bb64a62cc4db4d7b7aa2185e666f5",
    "bfcl_eval/model_handler/parser/js_parser.py": "65eea903e538cc2afa5f37e15cccfc303462f750ca45556ee654f6722f4b1e52",
    "bfcl_eval/model_handler/parser/json_parser.py": "b36f1cc561b247cf0b1adfc9190bbf2e081ad39c133205732e26605c75add81e",
    "bfcl_eval/model_handler/parser/xml_parser.py": "ca4181de9d29fc136283e8fb2dc18f4739ab5fc340e514ae3afa0fc55ab7d167",
    "bfcl_eval/model_handler/utils.py": "f78fd3edce603b333dc9a88ee2c041dc547d51f71aa449ffebc044c4b1e353f3",
    "bfcl_eval/utils.py": "3703b9bb63f83581c60b8e0b82aac74c360c9ca781e99e7d4eb28b0cce2285dd",
}
"""Upstream's files behind tasks, gold and verdicts, by path in site-packages: what `worker.stamp()` finds there."""
