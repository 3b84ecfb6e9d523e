# ruff: noqa: E501 - a path and its digest stay on one line
"""What the toolkit's environment holds, as plain data: pins, hashes, a range of Pythons, digests of upstream's files.

Everything that upstream imports and single-turn grading never calls is left out, and stood in for by `worker.py`; both
wheels are pure Python, so one hash each serves every platform. Later categories need more of upstream's own pins: calls
that are executed over several turns need `mpmath==1.3.0`
(sha256:a0b2b9fe80bbcd81a6647ff13108738cfb482d481d826cc0e02f5b35e5c88d2c).
"""

PYTHON = ">=3.10,<3.14"
"""Tested on 3.10, 3.11, 3.12 and 3.13: the same verdicts, byte for byte."""

REQUIREMENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("bfcl-eval", "2026.3.23", ("sha256:3bb6dfa5f0c68ad403c9ec50b00db2bb3b4cc9b38ab1ff33f48fe30d853d3a0a",)),
    ("filelock", "3.20.0", ("sha256:339b4732ffda5cd79b13f4e2711a31b0365ce445d95d243bb996273d072546a2",)),
)
"""Distribution, version, and the hashes of every acceptable wheel; to be installed without their dependencies."""

IMPORTS = ("bfcl_eval", "filelock")
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
    "bfcl_eval/data/BFCL_v4_multiple.json": "aef168155ebd74b7ac2401198b201343bc7d16d7a3d7e0d4e6d8ee82c6969b2a",
    "bfcl_eval/data/BFCL_v4_parallel.json": "19f51a82eff42e5d62541aa500115a056eb78f437c2ba1f10415fd7c8e5dda84",
    "bfcl_eval/data/BFCL_v4_parallel_multiple.json": "8863ea8433239f55c5f016154cf0830853c89f693c6ea270396a2fa121960579",
    "bfcl_eval/data/BFCL_v4_simple_java.json": "13d2303a125b08754f0e41995b9273b5005fa8ed8ebfaa24ef53b4d83c4b5c6e",
    "bfcl_eval/data/BFCL_v4_simple_javascript.json": "329e67fedf79a6243d93dbda4b388d12bd2d31f1f2163d92cb6ef676d1764f44",
    "bfcl_eval/data/BFCL_v4_simple_python.json": "82dd63ba502eb2520c6b5d1d9a5c4b590e03ff261565175561f6228a367d1991",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_multiple.json": "97e90d59c5bd76c55a2920ce93e5566e9046307d3f558578f085f9d3a56c3084",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_parallel.json": "8a9f189ff0e832ebbbbdade1fd95a7dbcc67406e9177df3f0aad76f59ab00350",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_parallel_multiple.json": "f5b5f360556c5feb51db46fb9f56ee4b304f4b45b161599bbb14161c98a2873f",
    "bfcl_eval/data/possible_answer/BFCL_v4_live_simple.json": "fec9cfa9744a936f9126981e85a2023da1e63e273eafebc81923a1162fad70ce",
    "bfcl_eval/data/possible_answer/BFCL_v4_multiple.json": "244e00ce9395df948bcafc7bee64e8f9c87ef70887587d83cae45b13699f3047",
    "bfcl_eval/data/possible_answer/BFCL_v4_parallel.json": "8a6aa19c1adddc6a5a2f7e40f9dbf30cc7e95815e7b830c90589ab318229e0f0",
    "bfcl_eval/data/possible_answer/BFCL_v4_parallel_multiple.json": "5ebf24f458c1f16300c05505d83d6f0a1b68b79be273a033febd0d4f840507e3",
    "bfcl_eval/data/possible_answer/BFCL_v4_simple_java.json": "78f25616084044fa05bbfcee68e03f6ececb222bdd5cb3b7783a675fb3366e35",
    "bfcl_eval/data/possible_answer/BFCL_v4_simple_javascript.json": "e2f9f2e51d88e0c8056ffbf1a3dd3d02eb032532d2b5d98c9cc9003385bdd56b",
    "bfcl_eval/data/possible_answer/BFCL_v4_simple_python.json": "90cd5bc653690ee8e459b5b3f3fc9458606f7f3fcbf795bb51b7dc581f8c86dc",
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
