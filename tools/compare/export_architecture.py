"""Exports one published architecture with random weights as ONNX, with a small input or at its real size.
Development only; `architectures.py` calls it in an environment with PyTorch (`setup architectures`).

    build/architectures/bin/python tools/compare/export_architecture.py NAME FILE.onnx [--real]
    build/architectures/bin/python tools/compare/export_architecture.py [--real]      # lists the names
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, Callable

import torch
import torchvision
import transformers

Exportable = tuple[torch.nn.Module, tuple[Any, ...]]
models = torchvision.models


class Part(torch.nn.Module):
    """A part of a module's result."""

    def __init__(self, module: torch.nn.Module, part: Callable[[Any], Any]) -> None:
        super().__init__()
        self.module, self.part = module, part

    def forward(self, *arguments: Any) -> Any:
        return self.part(self.module(*arguments))


def picture(extent: int) -> tuple[Any, ...]:
    return (torch.rand(1, 3, extent, extent),)


def words(count: int = 12) -> torch.Tensor:
    return torch.randint(0, 100, (1, count))


def classifier(name: str, extent: int) -> Exportable:
    more = {"init_weights": False} if name in ("inception_v3", "googlenet") else {}
    return getattr(models, name)(weights=None, **more), picture(extent)


def segmentation(name: str) -> Exportable:
    module = getattr(models.segmentation, name)(weights=None, weights_backbone=None)
    return Part(module, lambda given: given["out"]), picture(65)


def detector(name: str) -> Exportable:
    module = getattr(models.detection, name)(weights=None, weights_backbone=None, num_classes=5)
    return module, ([torch.rand(3, 128, 128)],)


def video(name: str, frames: int, extent: int) -> Exportable:
    return getattr(models.video, name)(weights=None), (torch.rand(1, 3, frames, extent, extent),)


def of_timm(name: str) -> Exportable:
    import timm
    module = timm.create_model(name, pretrained=False, scriptable=False, exportable=True)
    return module, picture(module.default_cfg["input_size"][-1])


def of_transformers(name: str, configuration: str, inputs: tuple[Any, ...], sizes: dict[str, Any]) -> Exportable:
    settings = getattr(transformers, configuration)(**sizes)
    settings.return_dict = False
    settings.use_cache = False
    return getattr(transformers, name)(settings), inputs


LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "hidden_size": 32}
TEXT = {"vocab_size": 100, **LAYERS}
SHORT_TEXT = {"vocab_size": 100, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
BOTH_SIDES = {"vocab_size": 100, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
              "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
STAGES = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4],
          "decoder_hidden_size": 16}
SOUND = {**LAYERS, "vocab_size": 100, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3),
         "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
PATCHES = {**LAYERS, "image_size": 32, "patch_size": 8}

# Class, configuration, inputs, sizes.
TRANSFORMERS: list[tuple[str, str, Callable[[], tuple[Any, ...]], dict[str, Any]]] = [
    ("BertModel", "BertConfig", lambda: (words(),), TEXT),
    ("DistilBertModel", "DistilBertConfig", lambda: (words(),),
     {"vocab_size": 100, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
    ("RobertaModel", "RobertaConfig", lambda: (words(),), TEXT),
    ("AlbertModel", "AlbertConfig", lambda: (words(),), {**TEXT, "embedding_size": 16}),
    ("ElectraModel", "ElectraConfig", lambda: (words(),), {**TEXT, "embedding_size": 16}),
    ("MobileBertModel", "MobileBertConfig", lambda: (words(),),
     {**TEXT, "hidden_size": 64, "intra_bottleneck_size": 32, "embedding_size": 32}),
    ("SqueezeBertModel", "SqueezeBertConfig", lambda: (words(),), {**TEXT, "embedding_size": 32}),
    ("DebertaV2Model", "DebertaV2Config", lambda: (words(),),
     {**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16,
      "position_buckets": 8}),
    ("LongformerModel", "LongformerConfig", lambda: (words(),),
     {**TEXT, "attention_window": 4, "max_position_embeddings": 64}),
    ("XLNetModel", "XLNetConfig", lambda: (words(),),
     {"vocab_size": 100, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    ("FunnelModel", "FunnelConfig", lambda: (words(),),
     {"vocab_size": 100, "d_model": 32, "block_sizes": [1, 1], "n_head": 4, "d_head": 8, "d_inner": 64}),
    ("PerceiverForMaskedLM", "PerceiverConfig", lambda: (words(16),),
     {"num_latents": 8, "d_latents": 32, "d_model": 32, "num_blocks": 1, "num_self_attends_per_block": 2,
      "num_self_attention_heads": 4, "num_cross_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 16}),
    ("LayoutLMModel", "LayoutLMConfig", lambda: (words(),), TEXT),
    ("EsmModel", "EsmConfig", lambda: (words(),), {**TEXT, "pad_token_id": 1, "position_embedding_type": "rotary"}),
    ("GPT2LMHeadModel", "GPT2Config", lambda: (words(),), SHORT_TEXT),
    ("GPTNeoModel", "GPTNeoConfig", lambda: (words(),),
     {"vocab_size": 100, "hidden_size": 32, "num_layers": 2, "attention_types": [[["global", "local"], 1]],
      "num_heads": 4, "max_position_embeddings": 32, "window_size": 4}),
    ("GPTNeoXModel", "GPTNeoXConfig", lambda: (words(),), TEXT),
    ("GPTJModel", "GPTJConfig", lambda: (words(),), {**SHORT_TEXT, "rotary_dim": 4}),
    ("OPTModel", "OPTConfig", lambda: (words(),),
     {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64,
      "max_position_embeddings": 32, "word_embed_proj_dim": 32}),
    ("BloomModel", "BloomConfig", lambda: (words(),), {"vocab_size": 100, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    ("LlamaForCausalLM", "LlamaConfig", lambda: (words(),),
     {**TEXT, "num_key_value_heads": 2, "max_position_embeddings": 32}),
    ("MistralModel", "MistralConfig", lambda: (words(),),
     {**TEXT, "num_key_value_heads": 2, "max_position_embeddings": 32, "sliding_window": 8}),
    ("FalconModel", "FalconConfig", lambda: (words(),),
     {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}),
    ("MptModel", "MptConfig", lambda: (words(),),
     {"vocab_size": 100, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 32}),
    ("RwkvModel", "RwkvConfig", lambda: (words(),),
     {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "attention_hidden_size": 32, "intermediate_size": 64,
      "context_length": 32}),
    ("T5ForConditionalGeneration", "T5Config",
     lambda: (words(), torch.ones(1, 12, dtype=torch.long), words(5)),
     {"vocab_size": 100, "d_model": 32, "num_layers": 2, "num_heads": 4, "d_ff": 64, "d_kv": 8}),
    ("BartModel", "BartConfig", lambda: (words(),), {**BOTH_SIDES, "max_position_embeddings": 32}),
    ("WhisperModel", "WhisperConfig", lambda: (torch.rand(1, 16, 100), None, words(5)),
     {**BOTH_SIDES, "max_source_positions": 50, "max_target_positions": 32, "num_mel_bins": 16, "pad_token_id": 0,
      "decoder_start_token_id": 1}),
    ("Speech2TextModel", "Speech2TextConfig", lambda: (torch.rand(1, 40, 16), None, words(5)),
     {**BOTH_SIDES, "input_feat_per_channel": 16, "conv_channels": 32}),
    ("Wav2Vec2Model", "Wav2Vec2Config", lambda: (torch.rand(1, 1600),), SOUND),
    ("HubertModel", "HubertConfig", lambda: (torch.rand(1, 1600),), SOUND),
    ("CLIPVisionModel", "CLIPVisionConfig", lambda: picture(32), PATCHES),
    ("VideoMAEModel", "VideoMAEConfig", lambda: (torch.rand(1, 4, 3, 32, 32),), {**PATCHES, "num_frames": 4}),
    ("DPTForDepthEstimation", "DPTConfig", lambda: picture(32),
     {**PATCHES, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3], "neck_hidden_sizes": [8, 8, 16, 16],
      "fusion_hidden_size": 16}),
    ("SegformerForSemanticSegmentation", "SegformerConfig", lambda: picture(64), {**STAGES, "num_labels": 3}),
    ("GLPNForDepthEstimation", "GLPNConfig", lambda: picture(64), STAGES),
    ("DetrForObjectDetection", "DetrConfig", lambda: picture(64),
     {"use_pretrained_backbone": False, "backbone": "resnet18", "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
      "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
      "num_queries": 10}),
]

TIMM = """mobilevit_s levit_128s coat_tiny beit_base_patch16_224 xcit_nano_12_p16_224 edgenext_xx_small repvgg_a0 ghostnet_100
    hrnet_w18_small mixer_s16_224 resmlp_12_224 nfnet_l0 lambda_resnet26t botnet26t_256 cait_xxs24_224 crossvit_tiny_240
    pit_ti_224 poolformer_s12 davit_tiny efficientformer_l1 nest_tiny sequencer2d_s tiny_vit_5m_224 eva02_tiny_patch14_224
    gmlp_s16_224 res2net50_26w_4s skresnet18 selecsls42 dla34 hardcorenas_a tresnet_m twins_pcpvt_small visformer_tiny
    focalnet_tiny_srf mobileone_s0 fastvit_t8 inception_next_tiny repvit_m1 cs3darknet_s dpn68 ese_vovnet19b_dw
    legacy_seresnet18 mvitv2_tiny pvt_v2_b0 swinv2_cr_tiny_224 xception41 gcvit_xxtiny convit_tiny
    deit3_small_patch16_224 vit_relpos_small_patch16_224 maxxvit_rmlp_nano_rw_256 coatnet_nano_rw_224""".split()
CLASSIFIERS = """resnet18 resnext50_32x4d mobilenet_v2 mobilenet_v3_small efficientnet_b0 efficientnet_v2_s densenet121
    shufflenet_v2_x0_5 mnasnet0_5 regnet_y_400mf squeezenet1_0 convnext_tiny googlenet""".split()
SEGMENTATIONS = ["deeplabv3_mobilenet_v3_large", "fcn_resnet50", "lraspp_mobilenet_v3_large"]
DETECTORS = ["fasterrcnn_mobilenet_v3_large_320_fpn", "ssdlite320_mobilenet_v3_large", "retinanet_resnet50_fpn",
             "fcos_resnet50_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn"]


def architectures() -> dict[str, Callable[[], Exportable]]:
    """All architectures by name, without the ones that PyTorch's exporter refuses."""
    out: dict[str, Callable[[], Exportable]] = {}
    for name in CLASSIFIERS:
        out[name] = lambda name=name: classifier(name, 64)
    for name, extent in (("inception_v3", 299), ("swin_t", 224), ("maxvit_t", 224)):
        out[name] = lambda name=name, extent=extent: classifier(name, extent)
    for name in SEGMENTATIONS:
        out[name] = lambda name=name: segmentation(name)
    for name in DETECTORS:
        out[name] = lambda name=name: detector(name)
    for name, frames, extent in (("r3d_18", 4, 64), ("r2plus1d_18", 4, 64), ("mvit_v1_b", 16, 224)):
        out[name] = lambda name=name, frames=frames, extent=extent: video(name, frames, extent)
    for name in TIMM:
        out["timm/" + name] = lambda name=name: of_timm(name)
    for name, configuration, inputs, sizes in TRANSFORMERS:
        out["transformers/" + name] = lambda name=name, configuration=configuration, inputs=inputs, sizes=sizes: (
            of_transformers(name, configuration, inputs(), sizes))
    return out


# The default configurations, as published.
REAL_TRANSFORMERS: list[tuple[str, str, Callable[[], tuple[Any, ...]], dict[str, Any]]] = [
    ("BertModel", "BertConfig", lambda: (words(128),), {}),
    ("DistilBertModel", "DistilBertConfig", lambda: (words(64),), {}),
    ("RobertaModel", "RobertaConfig", lambda: (words(64),), {}),
    ("AlbertModel", "AlbertConfig", lambda: (words(64),), {"hidden_size": 768, "num_attention_heads": 12,
                                                           "intermediate_size": 3072}),
    ("ElectraModel", "ElectraConfig", lambda: (words(128),), {}),
    ("MobileBertModel", "MobileBertConfig", lambda: (words(64),), {}),
    ("SqueezeBertModel", "SqueezeBertConfig", lambda: (words(64),), {}),
    ("GPT2Model", "GPT2Config", lambda: (words(64),), {}),
    ("OPTModel", "OPTConfig", lambda: (words(32),), {}),
    ("GPTNeoModel", "GPTNeoConfig", lambda: (words(32),), {"hidden_size": 768, "num_layers": 12, "num_heads": 12,
                                                           "attention_types": [[["global", "local"], 6]]}),
    ("T5EncoderModel", "T5Config", lambda: (words(64),), {}),
    ("Wav2Vec2Model", "Wav2Vec2Config", lambda: (torch.rand(1, 16000),), {}),
    ("CLIPVisionModel", "CLIPVisionConfig", lambda: picture(224), {}),
    ("SegformerForSemanticSegmentation", "SegformerConfig", lambda: picture(224), {}),
]
REAL_CLASSIFIERS = """resnet18 resnet50 resnext50_32x4d mobilenet_v2 mobilenet_v3_large mobilenet_v3_small efficientnet_b0
    efficientnet_v2_s densenet121 shufflenet_v2_x1_0 mnasnet1_0 regnet_y_400mf squeezenet1_1 convnext_tiny googlenet
    swin_t maxvit_t vgg11""".split()


def whisper_encoder() -> Exportable:
    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    settings = transformers.WhisperConfig(**sizes)
    settings.return_dict = False
    encoder = transformers.models.whisper.modeling_whisper.WhisperEncoder(settings)
    return Part(encoder, lambda given: given[0]), (torch.rand(1, 80, 3000),)


def large_segmentation(name: str) -> Exportable:
    module, _ = segmentation(name)
    return module, picture(224)


def real_architectures() -> dict[str, Callable[[], Exportable]]:
    """The architectures whose speed is measured, at published sizes."""
    out: dict[str, Callable[[], Exportable]] = {}
    for name in REAL_CLASSIFIERS:
        out[name] = lambda name=name: classifier(name, 224)
    out["inception_v3"] = lambda: classifier("inception_v3", 299)
    for name in SEGMENTATIONS:
        out[name] = lambda name=name: large_segmentation(name)
    out["r3d_18"] = lambda: video("r3d_18", 16, 112)
    for name in ["vit_base_patch16_224", *TIMM]:
        out["timm/" + name] = lambda name=name: of_timm(name)
    for name, configuration, inputs, sizes in REAL_TRANSFORMERS:
        out["transformers/" + name] = lambda name=name, configuration=configuration, inputs=inputs, sizes=sizes: (
            of_transformers(name, configuration, inputs(), sizes))
    out["transformers/WhisperEncoder"] = whisper_encoder
    return out


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--real"]
    known = architectures() if len(arguments) + 1 == len(sys.argv) else real_architectures()
    if len(arguments) != 2:
        print("\n".join(known))
        return
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    module, inputs = known[arguments[0]]()
    module.eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    torch.onnx.export(module, inputs, arguments[1], opset_version=16)


if __name__ == "__main__":
    main()
