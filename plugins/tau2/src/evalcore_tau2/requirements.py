# ruff: noqa: E501 - a path and its digest stay on one line
"""What the toolkit's environment holds, as plain data: pins, hashes, a range of Pythons, upstream's files and where they are.

Upstream depends on 20 packages, 400 MB when installed. What decides anything needs nine small ones, and numpy with rank-bm25 for
banking's search; what else it imports is stood in for by the worker. `pydantic-core` and numpy have a wheel for each platform.
"""

from evalcore_tau2.worker.tau2_pins import DATA, VERSION

PYTHON = ">=3.11,<3.14"
"""Upstream as a whole needs 3.12; the part that is imported here runs on 3.11 too."""

REQUIREMENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "addict",
        "2.4.0",
        ("sha256:249bb56bbfd3cdc2a004ea0ff4c2b6ddc84d53bc2194761636eb314d5cfa5dfc",),
    ),
    (
        "annotated-types",
        "0.8.0",
        ("sha256:f072f4d804ea359e4eaf198b1af7a8b0943881a87f31bb764f8bf219bb9419e0",),
    ),
    (
        "docstring-parser",
        "0.18.0",
        ("sha256:b3fcbed555c47d8479be0796ef7e19c2670d428d72e96da63f3a40122860374b",),
    ),
    (
        "loguru",
        "0.7.3",
        ("sha256:31a33c10c8e1e10422bfd431aeb5d351c7cf7fa671e3c4df004162264b28220c",),
    ),
    (
        "numpy",
        "2.4.6",
        (
            "sha256:0280e0356c0829a18d9de1cb7eee50ec22ca639878d7240307ca0943d73cd2c4",
            "sha256:110f8b71aacb688ec69062bb7f6938a0f8acb01b7c1c4beb453c65b6d234584d",
            "sha256:0ab0a9c4ffb1a6d95ef519fe4247dba8eb6b18ad93999f76b7f657039acabd47",
            "sha256:89cd468399cfd2504718f0ba50e410dca55a170b61a02ad92bb18c8a65186e93",
            "sha256:f407cb6b8e9d6d8c626bc73c945db1706035af8fd632295547bf1c9e46d092d6",
            "sha256:001fbb8e08d942dd57599e781f2472269ee7f2755fae407b4f67b2f0b17da3f1",
            "sha256:ebfb099f8dcf083deef3ac1ca4c1503f387cf76296fcb3816b66f5ecb5f54fdb",
            "sha256:5f9fb9157b4ce2971008323afe46053787b526ef624fea915b261468a8421a0f",
            "sha256:90f9849678c75fe7afa2d348ac842c168b0a4d3d61919687216dfc547976d853",
            "sha256:e5805d5a22fd19c8ccff10a9561f9df94436b0545619ea579db2d3c35294bce2",
            "sha256:511dbaf848decaaaf4b4ca48032619fb3138710c4bf7da7617765edad1ef96b0",
            "sha256:bf162abab1c1a736333192707cef898e735a5ca00f38f27eeedf44b39d9e85eb",
            "sha256:72fbe16c6fac95aedf5937fa873445cec2110be35d8a4e9433d7501fd98dae6b",
            "sha256:a7830bab239b79cda9c08c2da014761cafb48da6150e1da17ac06283f43b6089",
            "sha256:dfa20cc6ca228e6b155b11da03825975ce66aea520985dbbddf0f2a5a495c605",
        ),
    ),
    (
        "pydantic",
        "2.14.4",
        ("sha256:653a2ad9f6d8858529c77c72717d0ea991d6c6837fe683246b2f4b2bbfc3fadc",),
    ),
    (
        "pydantic-core",
        "2.50.5",
        (
            "sha256:bcc830e4f48499fd30a870f07c30752273ae2ddccce34d65d51c9fc880c380ab",
            "sha256:40d5da89a632e6c6c938f93fdf54c534882d258a80f51ccfe1650cdedc12e82c",
            "sha256:ba2b34529984a8e3cb1bc62a7687617722695a2cb4e57958de32a0eba128a07a",
            "sha256:488319076ec92908b91fc6265ce761f1d78748f69f85518564fd16bf333e1b70",
            "sha256:05815bbe2c7bec58d1ce456cc0a98f368e6ef9345b1d9311f42b814d34ad7086",
            "sha256:24d23de96195ff9637e5940a7fbde3bea6a355b26fb5f491737dd803aa5d5a93",
            "sha256:a9bcf23628860d5a90cacdc188ee3b7d0547a38eb985214f03e7002a6ca0e558",
            "sha256:07a62d44515d674d750cfd86b7ce1dd93111be870f378d7c27b37aeb78d0cb4a",
            "sha256:470bbc2495367f60d3ca849a8039e4c164701d10637e7743f4427d92651bdb6d",
            "sha256:3cf575867ecaf89aca440e5a4253d2facf1ca37bab30a4e8c205ec611228126a",
            "sha256:e5d5d77a9446f44688a5ef420d92c9facac0865ef5565215db54be184ab7906f",
            "sha256:639a51931869c0594d8723b2f529c547db1aa33dc9571d001dc205d896170c08",
            "sha256:8bbe282e79dc71b24ba7be284eacf27c8ddff8f26911e2030a0dd123c6aed326",
            "sha256:cbfde3ad127786f1dea1a6cd89a5eb824a16203f24743ad2b4e07506f43bc844",
            "sha256:b9348cfd798b8199d34da5258becf2fc8f5e4e7a3b51da30c34b81b996a07b34",
        ),
    ),
    (
        "rank-bm25",
        "0.2.2",
        ("sha256:7bd4a95571adadfc271746fa146a4bcfd89c0cf731e49c3d1ad863290adbe8ae",),
    ),
    (
        "toml",
        "0.10.2",
        ("sha256:806143ae5bfb6a3c6e736a764057db0e6a0e05e338b5630894a5f779cabb4f9b",),
    ),
    (
        "typing-extensions",
        "4.16.0",
        ("sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8",),
    ),
    (
        "typing-inspection",
        "0.4.5",
        ("sha256:bc210535442b39e1bf2805e0c7a17dfd6a4ace760c84c7f7d16245d23a6b1c39",),
    ),
)
"""Distribution, version, and the hashes of every acceptable wheel; to be installed without their dependencies."""

IMPORTS = ("addict", "docstring_parser", "loguru", "numpy", "pydantic", "rank_bm25", "toml")
"""What must import in a finished environment. Upstream imports only from within the worker."""

CODE = {
    "tau2/agent/__init__.py": "fe543554d2638c983cbbc64ca19b2a4ce39c08c36dbf8ec303ac4d65a0244075",
    "tau2/agent/base/__init__.py": "c0099fefb99b15f6f1482c9ebd918d560d104aaa47471e86b8574b25c259f534",
    "tau2/agent/base/llm_config.py": "3b5bf4c5f69e5df5357374a9e379e6932096bcdbfcf3e411c4791c33d73d35b4",
    "tau2/agent/base/participant.py": "64609023945372948cbec447fbf3b9d7b2eb53701a185680305af5247402d420",
    "tau2/agent/base/streaming.py": "2bd6ae56cee0469ecdb88a3d7437f35f19982c5799ea27a942c547e9a67e94c4",
    "tau2/agent/base/streaming_utils.py": "e9b26a7f4f4bf1decd291fe8b3fd12da97a8158ecc250281a18b175f8d79cc15",
    "tau2/agent/base_agent.py": "97f1033723d03da99f3338ff7a12ed60114a55ed293928ff4ca0bdace6851b4d",
    "tau2/agent/llm_agent.py": "d13412ff502859f0ef0492af0128f1b2666be32640057ba8e076d2602af084d8",
    "tau2/config.py": "1f3589ff61392778079d688ad18b680ce13275a84462b2383b258614b665eb46",
    "tau2/data_model/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "tau2/data_model/audio.py": "443de1a2c4fa856621eaccf8b6d0637f4e8d4f0de0aba990e9732c49b3751bb0",
    "tau2/data_model/audio_effects.py": "30fc2e70e27e1691b5e098c7e165cdaee44108efff48ee36c41ccef9fb448ee0",
    "tau2/data_model/message.py": "378cc451ded5b4314c4fe177bf83e72abb2e0bba53b79c2a0e27c53f3cbd15b0",
    "tau2/data_model/persona.py": "e012387070438f51673aed61291288541c7270bce310b9851fde89493fac8e19",
    "tau2/data_model/simulation.py": "518a4eda9af783f25243e1bd2c714f4617cf86188878a0bb584fe73c9528a35a",
    "tau2/data_model/tasks.py": "0243a6454b2e9c8a14b8364c38ff95dc1dd7512105b69fada9bf9295fc8170fa",
    "tau2/data_model/voice.py": "019841fc7efa629043f4df2905c6f26c9c2d6b254421981ed60baf62a8515e82",
    "tau2/data_model/voice_personas.py": "674761a5b702aebfe3064d87644dd9bf95ca86b0f38ffbb31f94f45191927264",
    "tau2/domains/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "tau2/domains/airline/__init__.py": "48747a78fd49944aaef6f540269b5b77e558b8b996cb0f7210b80317769bc032",
    "tau2/domains/airline/data_model.py": "a8083e2f590e4b9b66a65d7cd50b7a0247e4fa33d6961aaeb02e4d92488b3cff",
    "tau2/domains/airline/environment.py": "64589faffbcb75c8ac7c95d2c94ad27f4bd70e23b9856a6928fa678a0f7fcc8d",
    "tau2/domains/airline/tools.py": "3987f21c286314cb48764f97052934ff4fd60e27a0b2e4a43423911adf8eaa26",
    "tau2/domains/airline/utils.py": "9da26327af3d7fa94e05d48869d8b06cd8110313fc24d308993a750106b11f06",
    "tau2/domains/mock/__init__.py": "48747a78fd49944aaef6f540269b5b77e558b8b996cb0f7210b80317769bc032",
    "tau2/domains/mock/data_model.py": "12f8be77d805d8d332291d6f0b3283d30ff0581c15d887ab5a1f37f8a9f395aa",
    "tau2/domains/mock/environment.py": "4a45228c388606fe16203c107ae107622fb5d9505d90b56e6fbc33acc2dc0d51",
    "tau2/domains/mock/tools.py": "926b077132c8eabd2bbae8173dbed299eea7fcd4a78c74c3986766626a24b928",
    "tau2/domains/mock/user_data_model.py": "0c1d084d1f2e4539e050f28ba01d97528d2e05c6d4c4a3cb49cb8c9a0eb4ebd9",
    "tau2/domains/mock/user_tools.py": "75a8e33dca3b358b2fab08786922aa142d03e053bc02c69c0d292af325a3131f",
    "tau2/domains/mock/utils.py": "d9f43cf5eeefad0817973d188dad2113e73c37d1b9bae6fc86a6b0f1a703622e",
    "tau2/domains/retail/__init__.py": "48747a78fd49944aaef6f540269b5b77e558b8b996cb0f7210b80317769bc032",
    "tau2/domains/retail/data_model.py": "f5ad09590953855cc49d2ab2ad5c0594be408cae74d1500fb278e5a6bf2c50d6",
    "tau2/domains/retail/environment.py": "5b819fb895a4ef49df71404c3d9678ab09e8578eec841b8ec9229c8f51e32405",
    "tau2/domains/retail/tools.py": "34f4fe9702d36f0dd4697700fbcd63d0cf5386e6eb8e7499aaa336243bad8750",
    "tau2/domains/retail/utils.py": "a385b085b63d0e5921c15f7e2201b00df1d984990f4dbb7b24a867e3bf7cb648",
    "tau2/domains/telecom/__init__.py": "48747a78fd49944aaef6f540269b5b77e558b8b996cb0f7210b80317769bc032",
    "tau2/domains/telecom/data_model.py": "f868cbbd344cadf6c376f21976edfa38b8cfe199922748e31eee666f791a0628",
    "tau2/domains/telecom/environment.py": "7bc335d717a8cb6bda54551fa2b5c12ff073f6287878d215f4181572e551abcd",
    "tau2/domains/telecom/tools.py": "388552434d1b8225e33e7958bdb6efccfe92b49e11d1838568d9b559514e9d01",
    "tau2/domains/telecom/user_data_model.py": "27be0006694e9a740dd378f42099d6d1afecbd445f7906aedcd1f800087377c2",
    "tau2/domains/telecom/user_tools.py": "03fa751eeea3734313a3f5274223d42750fd5c1a28f2624265a678f271ac309d",
    "tau2/domains/telecom/utils.py": "9195707fca3d96b41d78de661bd2408cfaab75793769c9a739a7521b690fc6dd",
    "tau2/environment/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "tau2/environment/db.py": "49e12f900a8aabe62d6137a9baa1e7d471f9b3e516cf7c85fb61ecde8a65154c",
    "tau2/environment/environment.py": "b5357f11e2914c11ce0372af919cc1d726191b91cd97f776b8fb388ae0615350",
    "tau2/environment/tool.py": "6dd74021ba95a6f8dfa0971546b768b90e15b212f8f9051156ae6bcdd24b77d3",
    "tau2/environment/toolkit.py": "3e897891e8878c3399aec72e42eb0eb5546642420c0c902b225421fc936b924a",
    "tau2/evaluator/__init__.py": "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b",
    "tau2/evaluator/evaluator.py": "204d95a82812402f2fee989250392d3c66de702a8bcc20258c7e2a8153a1ea8d",
    "tau2/evaluator/evaluator_action.py": "4347ec90fd09db73b9f7e46515220363f91f0c3b12aeddf7ece83346f49227f8",
    "tau2/evaluator/evaluator_base.py": "1f79c11e5cb5c8cabc26cdaad7ff3a3a1687380f4d7fb1f9fbd9b6f9ab18e1ff",
    "tau2/evaluator/evaluator_communicate.py": "7a082f91c746b84cc37c6994eb6ff78f297222fd067503a4cc86d45750696507",
    "tau2/evaluator/evaluator_env.py": "b53ebfe6b0b06d7a2071b5f9dd03ee6ca8ac6000b0ef44f3bd345b346c30d8ac",
    "tau2/evaluator/evaluator_nl_assertions.py": "cb6b3758cdceb02a726732b4ee1af618affcc08f8ab84b44f060146b8f3ad90a",
    "tau2/orchestrator/__init__.py": "8cfdda384404bbc2a14999757d3f304da71db2191d828723dbd19a40c8906828",
    "tau2/orchestrator/modes.py": "b2d131cef3f15b1558568b1e4b0b316aeea26ae7fbe1e1092d79febbb7d74553",
    "tau2/orchestrator/orchestrator.py": "6c689e5d1037dd08aef8834b46f58efa14359824cbebf7084de0172e5f580cba",
    "tau2/user/__init__.py": "7698d14639e2eea82fc40169113ad99d0f57de30207a3cb47b8f9d5fa96ca351",
    "tau2/user/user_simulator.py": "bfe1defe73bce25450b2be697c249d6cec2f3ba25a70e32e2452ba75a53a630c",
    "tau2/user/user_simulator_base.py": "e6c4bae08fb7ae6fa6ee5ee29624bc35e0dd6c6fe8ffeab065592c7b51fa32f2",
    "tau2/utils/__init__.py": "e255aeff0258cf0042f57283c5375cd78b034509b886ba827cd927a2a6d27c6a",
    "tau2/utils/io_utils.py": "ce66fb275b9bbf09a17be2cb2092bf2e696ab07655bf7571fe53ba8db4ed3015",
    "tau2/utils/llm_utils.py": "8c1f1c297e879b2a2d48ac65394cdd497bbd10f42fefa0ce770e7a65ce42bf95",
    "tau2/utils/pydantic_utils.py": "618dfc39b619bb0f623151682962ddc52bf2ea70bc2562dded884f118c84b78a",
    "tau2/utils/utils.py": "e0c39544b01700e60a3a26c7cf2c2d17e37e3852d5f0fa466b8517f82b83622b",
    "tau2/voice/__init__.py": "e134adb31cb51580d967b2ef853ecd0c54537f73f5f72336642cb52622e73b77",
    "tau2/voice/utils/__init__.py": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "tau2/voice/utils/audio_preprocessing.py": "88bc6d226f3d0423b3398769d3358eb284915f37c2fc518cc6c09070af7798e1",
    "tau2/voice/utils/probability.py": "76403e6293cf6cd170288fcad4972087dd1db267b1c6dd2e9b07c466404f38ec",
    "tau2/voice_config.py": "b644b1ef1c1f32c17e318d4f253ce420216b68c7ce30f184c6a1f5ff113f8121",
}
"""Every module of upstream's that is imported, by its path below `src`, with its sha256 at the pinned version."""

FILES = {**CODE, **{f"data/tau2/{name}": digest for name, digest in DATA.items()}}

_REPOSITORY = f"https://raw.githubusercontent.com/sierra-research/tau2-bench/v{VERSION}"
ADDRESSES = {name: f"{_REPOSITORY}/{'' if name.startswith('data/') else 'src/'}{name}" for name in FILES}
"""Upstream is on no package index: each file comes from the tagged source, and is kept only if its digest is the pinned one."""
